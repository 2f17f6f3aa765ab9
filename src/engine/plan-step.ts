import type { NewCheckpoint, PlannedTask, PendingTaskWrites } from "../model/checkpoint.ts";
import { smallMapBy } from "../model/small-map.ts";
import type { PlainError } from "../model/errors.ts";
import type { Emission, Plan, EngineStep } from "../ports/engine.ts";
import { hasBreakpoint } from "../graph/breakpoints.ts";
import type { SuperstepState } from "./superstep-state.ts";

interface PlanOptions {
  /** The tasks to run now. */
  readonly tasks: readonly PlannedTask[];
  /** All tasks of the step. Absent if none of them has finished or is paused: then `tasks` contains all of them. */
  readonly all?: readonly PlannedTask[];
  readonly emissions: Emission[];
  readonly checkpoints?: readonly NewCheckpoint[];
  readonly writes?: readonly PendingTaskWrites[];
  /**
   * The nodes that have just run; undefined if breakpoints do not apply, because a resume or a command has just named
   * what to run.
   */
  readonly after?: readonly string[];
}

/** Plans what happens after the latest checkpoint: tasks, a pause at a breakpoint, a failure because of the recursion limit, or the end. */
export function planStep(superstep: SuperstepState, planning: PlanOptions): EngineStep {
  const { tasks, all, emissions, checkpoints = [], writes = [], after } = planning;
  const { values, breakpoints } = superstep;
  const step = (next: Plan): EngineStep => ({ plan: next, checkpoints, writes, emissions, values });
  superstep.tasks = smallMapBy(all ?? tasks, ({ id }) => id);
  if (tasks.length === 0) return step({ kind: "done" });
  const paused = (): EngineStep => {
    emissions.push(superstep.interruptFact([]));
    return step({ kind: "paused", interrupts: {} });
  };
  if (after !== undefined && hasBreakpoint(breakpoints.after, after)) return paused();
  if (superstep.step > superstep.lastAllowedStep)
    return step({ kind: "failed", error: recursionError(superstep) });
  if (after !== undefined && breakpoints.before !== null) {
    const names = tasks.map((task) => task.name);
    if (hasBreakpoint(breakpoints.before, names)) return paused();
  }
  emissions.push(...superstep.taskFacts(tasks));
  return step({ kind: "tasks", tasks });
}

function recursionError({ limit }: SuperstepState): PlainError {
  return {
    error: "GraphRecursionError",
    message:
      `Recursion limit of ${limit} reached without hitting a stop condition; raise recursion_limit in the run's ` +
      `config, or look for a loop in the edges (GRAPH_RECURSION_LIMIT)`,
  };
}
