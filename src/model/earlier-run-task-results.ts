import type { PlannedTask, PendingTaskWrites } from "./checkpoint.ts";
import type { PlainError } from "./errors.ts";
import type { Interrupt } from "./interrupt.ts";
import type { RunKwargs } from "./run.ts";

/** The result of a planned task in an earlier run. The stream shows it in the event of the checkpoint that planned the task. */
export interface EarlierRunTaskResult {
  readonly interrupts?: readonly Interrupt[];
  readonly error?: PlainError;
  readonly result?: { readonly value: unknown };
  /** True if the task's node is a graph. */
  readonly subgraph?: true;
}

export type EarlierRunTaskResults = { readonly [task: string]: EarlierRunTaskResult };

/**
 * True when the run's stream modes show the earlier results of planned tasks. For other runs, these results are not stored
 * with the run's events.
 */
export const showsEarlierRunTaskResults = ({ stream_mode }: Pick<RunKwargs, "stream_mode">): boolean =>
  stream_mode.includes("debug") || stream_mode.includes("checkpoints");

/** The earlier results of planned tasks, by task id; undefined if there are none. */
export function earlierRunTaskResultsOf(
  next: readonly PlannedTask[],
  writesOf: (task: string) => PendingTaskWrites | undefined,
  isSubgraph: (task: PlannedTask) => boolean,
): EarlierRunTaskResults | undefined {
  const all: Record<string, EarlierRunTaskResult> = {};
  let isEmpty = true;
  for (const task of next) {
    const { result, error = null, interrupts = [], answered = [] } = writesOf(task.id) ?? {};
    const asked = [...answered, ...interrupts];
    const known: EarlierRunTaskResult = {
      ...(asked.length > 0 && { interrupts: asked }),
      ...(error !== null && { error }),
      ...(result !== undefined && { result: { value: result.value } }),
      ...(isSubgraph(task) && { subgraph: true as const }),
    };
    if (Object.keys(known).length === 0) continue;
    all[task.id] = known;
    isEmpty = false;
  }
  return isEmpty ? undefined : all;
}
