import type { CheckpointHead, NewCheckpoint, PlannedTask, TaskWrites } from "../model/checkpoint.ts";
import { fewBy } from "../model/small-map.ts";
import type { PlainError } from "../model/errors.ts";
import type { Emission, Plan, Step } from "../ports/engine.ts";
import { breaksAt } from "../graph/breakpoints.ts";
import type { Frame } from "./superstep-state.ts";

/** What {@link plan} needs: the tasks, what to store and emit, and whether breakpoints apply. */
interface Planning {
  /** The tasks to run now. */
  readonly tasks: readonly PlannedTask[];
  /** All tasks of the step; given if some of them have finished or are paused. */
  readonly all?: readonly PlannedTask[];
  readonly emissions: Emission[];
  readonly checkpoints?: readonly NewCheckpoint[];
  readonly writes?: readonly TaskWrites[];
  /** The nodes that have just run; undefined if breakpoints do not apply, because the run has just been resumed. */
  readonly after?: readonly string[];
}

/** Plans what follows the latest checkpoint: tasks, a pause at a breakpoint, a failure at the recursion limit, or the end. */
export function plan(frame: Frame, planning: Planning): Step {
  const { tasks, all, emissions, checkpoints = [], writes = [], after } = planning;
  const { values, ns, breaks } = frame;
  const step = (next: Plan): Step => ({ plan: next, checkpoints, writes, emissions, values });
  frame.tasks = fewBy(all ?? tasks, ({ id }) => id);
  if (tasks.length === 0) return step({ kind: "done" });
  const paused = (): Step => {
    emissions.push(frame.pauseFact([]));
    return step({ kind: "paused", interrupts: {} });
  };
  if (after !== undefined && breaksAt(breaks.after, after)) return paused();
  if (frame.step > frame.stop) return step({ kind: "failed", error: recursion(frame) });
  if (after !== undefined && breaks.before !== null) {
    const names = tasks.map((task) => task.name);
    if (breaksAt(breaks.before, names)) return paused();
  }
  const checkpoint = (frame.head as CheckpointHead).id;
  const at = frame.source.now();
  for (const { id, name, triggers, input } of tasks) {
    const fact = { t: "task", id, name, ns, checkpoint, triggers, at } as const;
    emissions.push({ fact: input === undefined ? fact : { ...fact, input } });
  }
  return step({ kind: "tasks", tasks });
}

function recursion({ limit }: Frame): PlainError {
  return {
    error: "GraphRecursionError",
    message:
      `Recursion limit of ${limit} reached without hitting a stop condition; raise recursion_limit in the run's ` +
      `config, or look for a loop in the edges (GRAPH_RECURSION_LIMIT)`,
  };
}
