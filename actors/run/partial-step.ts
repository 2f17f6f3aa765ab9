import { plainError } from "../../src/model/errors.ts";
import type { Execution, Step, StreamedFact } from "../../src/ports/engine.ts";
import type { Ending } from "./run-end.ts";

/**
 * The step of a stopped run that keeps what its tasks had begun to say, where the graph wants that. What tasks have left moves
 * on to its checkpoint, so that the run can be gone on with from there.
 */
export function cutStep(
  { writes, cell }: Pick<Ending, "writes" | "cell">,
  execution: Execution | undefined,
  streamed: ReadonlyMap<string, readonly StreamedFact[]>,
): Step | null {
  try {
    const step = execution?.cut?.(streamed) ?? null;
    const checkpoint = step?.checkpoints.at(-1)?.id;
    if (step === null || checkpoint === undefined) return null;
    return { ...step, writes: Array.from(writes.values(), (left) => ({ ...left, checkpoint })) };
  } catch (thrown) {
    // The run has to end all the same.
    const { message: error } = plainError(thrown);
    cell.deps.logger.warn("what a stopped run had begun to say could not be kept", { error });
    return null;
  }
}
