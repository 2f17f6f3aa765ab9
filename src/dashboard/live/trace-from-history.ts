import type { ThreadState } from "../api/records.ts";
import { taskErrorText, Trace } from "./trace.ts";

/**
 * Builds a trace from the checkpoints of a run. It contains no tokens, and only approximate times of tasks. `states`:
 * the run's states, newest first.
 */
export function traceFromHistory(run: string, states: readonly ThreadState[]): Trace {
  const trace = new Trace(run);
  for (const state of states.toReversed()) {
    const { checkpoint, parent_checkpoint, metadata, values, next, tasks, created_at } = state;
    const step = Number(metadata["step"] ?? 0);
    const at = Date.parse(created_at ?? "");
    trace.steps.push({
      ns: checkpoint?.checkpoint_ns ?? "",
      step,
      at,
      source: String(metadata["source"] ?? ""),
      checkpoint: checkpoint?.checkpoint_id ?? "",
      parent: parent_checkpoint?.checkpoint_id ?? null,
      values,
      next,
    });
    for (const { id, name, error, interrupts, result } of tasks) {
      if (name === "__start__") continue;
      trace.tasks.set(id, {
        id,
        name,
        ns: checkpoint?.checkpoint_ns ?? "",
        step: step + 1,
        status:
          error !== null
            ? "failed"
            : interrupts.length > 0
              ? "interrupted"
              : result === null
                ? "stopped"
                : "done",
        begunAt: at,
        endedAt: null,
        input: values,
        result,
        error: error === null ? null : taskErrorText(error),
        interrupts,
        tries: 1,
        messages: [],
        lines: [],
      });
    }
  }
  // The history does not contain when a task ended, so the time of the next state is used.
  for (const task of trace.tasks.values()) {
    task.endedAt = trace.stepsOf(task.ns).find(({ step }) => step >= task.step)?.at ?? task.begunAt;
    if (task.status === "stopped" && task.endedAt !== task.begunAt) task.status = "done";
  }
  return trace;
}
