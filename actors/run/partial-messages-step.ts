import { toPlainError } from "../../src/model/errors.ts";
import type { EngineStep } from "../../src/ports/engine.ts";
import type { GraphExecution } from "./graph-execution.ts";

/**
 * Makes the step that keeps the partial messages of a stopped run; null if there are none, or the graph cannot keep
 * them. The pending writes of the tasks move to the new checkpoint, so that a later run can resume from there.
 */
export function makePartialMessagesStep(graph: GraphExecution): EngineStep | null {
  try {
    const step = graph.isLoaded ? (graph.execution.cut?.(graph.tasks.streamed()) ?? null) : null;
    const checkpoint = step?.checkpoints.at(-1)?.id;
    if (step === null || checkpoint === undefined) return null;
    return { ...step, writes: Array.from(graph.writes.values(), (left) => ({ ...left, checkpoint })) };
  } catch (thrown) {
    // A run that cannot keep its partial messages must still end.
    const { message: error } = toPlainError(thrown);
    graph.liveThread.deps.logger.warn("the partial output of a stopped run could not be stored", { error });
    return null;
  }
}
