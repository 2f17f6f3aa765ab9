import { toPlainError } from "../../src/model/errors.ts";
import type { Execution, EngineStep, StreamedFact } from "../../src/ports/engine.ts";
import type { EndingAttempt } from "./run-end.ts";

/**
 * Makes the step that keeps the partial messages of a stopped run, where the graph supports that. The writes of its
 * tasks move to the new checkpoint, so that a later run can resume from there.
 */
export function partialStep(
  { writes, liveThread }: Pick<EndingAttempt, "writes" | "liveThread">,
  execution: Execution | undefined,
  streamed: ReadonlyMap<string, readonly StreamedFact[]>,
): EngineStep | null {
  try {
    const step = execution?.cut?.(streamed) ?? null;
    const checkpoint = step?.checkpoints.at(-1)?.id;
    if (step === null || checkpoint === undefined) return null;
    return { ...step, writes: Array.from(writes.values(), (left) => ({ ...left, checkpoint })) };
  } catch (thrown) {
    // The run must end even so.
    const { message: error } = toPlainError(thrown);
    liveThread.deps.logger.warn("the partial output of a stopped run could not be stored", { error });
    return null;
  }
}
