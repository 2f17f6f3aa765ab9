import type { ChannelChange, CheckpointHead, NewCheckpoint, PlannedTask } from "../model/checkpoint.ts";
import type { JsonObject } from "../model/json.ts";
import { type ChildPosition, childMachinePositionsAt } from "../model/machine-child.ts";
import type { Emission, ExecutionServices } from "../ports/engine.ts";
import type { ChangedChildMachine, ChildNode, GraphDefinition, MachineParts } from "../graph/definition.ts";
import { pullTask, PUSH_KIND, type TaskOrigin, taskId } from "../graph/superstep.ts";

/** The node name under which the events of the run report the updates of child machines. */
const NODE = "xstate.transition";

export interface ChildMachineStep {
  readonly checkpoints: readonly NewCheckpoint[];
  readonly emissions: readonly Emission[];
  readonly positions: readonly ChildPosition[];
}

interface Parts {
  readonly definition: GraphDefinition;
  /** The checkpoint of the root machine from which the step ran. */
  readonly head: CheckpointHead;
  readonly run: string;
  readonly metadata: JsonObject;
  readonly source: ExecutionServices;
}

/**
 * Makes the checkpoints of child machines (XState machines that another machine invokes or spawns) after a step, each in a
 * namespace of its own, and the events that report these checkpoints. Only clients read these checkpoints. A run continues
 * from the snapshots of the children in the root machine's checkpoint.
 */
export function makeChildMachineCheckpoints(
  changed: readonly ChangedChildMachine[],
  parts: Parts,
): ChildMachineStep {
  const { definition, head, run, metadata, source } = parts;
  const positions = new Map(childMachinePositionsAt(head).map((one) => [one.start, one]));
  const checkpoints: NewCheckpoint[] = [];
  const emissions: Emission[] = [];
  for (const { start, parent, ns: own, values, next: nodes, status } of changed) {
    const above = parent === null ? undefined : positions.get(parent);
    const before = positions.get(start);
    const ns = before?.ns ?? own;
    // A client may have edited the stored list of children. The empty namespace is that of the root machine, which MUST NOT get the state
    // of a child.
    if (ns === "") continue;
    const step = (before?.step ?? -1) + 1;
    const id = source.checkpointId(step);
    const created_at = source.now();
    const gone = before?.keys.filter((key) => !Object.hasOwn(values, key)) ?? [];
    const changes: Readonly<Record<string, ChannelChange>> = {
      ...Object.fromEntries(gone.map((key) => [key, { kind: "clear" }] as const)),
      ...Object.fromEntries(
        Object.entries(values).map(([key, value]) => [key, { kind: "set", value }] as const),
      ),
    };
    const made: CheckpointHead = {
      id,
      parent: before?.id ?? null,
      ns,
      step,
      source: "loop",
      created_at,
      run_id: run,
      metadata: { ...metadata, parents: { "": head.id, ...(above && { [above.ns]: above.id }) } },
      writes: null,
      next: nodes.map((node) => childTask({ ns, checkpoint: id, step: step + 1 }, node)),
      engine: null,
      graph: definition.hash,
    };
    checkpoints.push({ ...made, changes });
    positions.set(start, { start, ns, id, step, keys: Object.keys(values) });
    const site = { ns, checkpoint: before?.id ?? "", step };
    const { id: task, triggers } = pullTask(site, NODE, []);
    const fact = { id: task, name: NODE, ns, checkpoint: site.checkpoint, at: created_at };
    emissions.push({ fact: { t: "task", ...fact, triggers, input: { value: null } } });
    emissions.push({ fact: { t: "result", ...fact, update: values, interrupts: [] } });
    const machine = status;
    emissions.push({ fact: { t: "checkpoint", id, ns, step, input: false, machine }, values, head: made });
  }
  return { checkpoints, emissions, positions: [...positions.values()] };
}

/**
 * Makes the planned task of one node of a child machine, for the child machine's checkpoint. The id of an
 * actor's task contains the actor's number, because several actors may have the same name.
 */
function childTask(site: TaskOrigin, { name, start }: ChildNode): PlannedTask {
  if (start === null) return pullTask(site, name, []);
  return {
    id: taskId(site, name, PUSH_KIND, start),
    name,
    path: [PUSH_KIND, start],
    triggers: [PUSH_KIND],
  };
}

/**
 * Sets `child` on each task that runs an actor of a child machine. `child` identifies the task that clients see for
 * this actor in the child's namespace.
 */
export function withChildTasks(
  tasks: readonly PlannedTask[],
  machine: MachineParts,
  positions: readonly ChildPosition[],
): readonly PlannedTask[] {
  if (positions.length === 0) return tasks;
  const places = new Map(positions.map((one) => [one.ns, one]));
  return tasks.map((task) => {
    const of = machine.childOfTask(task.input?.value);
    const place = of === null ? undefined : places.get(of.ns);
    if (of === null || place === undefined) return task;
    const { ns, id: checkpoint, step } = place;
    const { id } = childTask({ ns, checkpoint, step: step + 1 }, { name: task.name, start: of.start });
    return { ...task, child: { ns, checkpoint, id } };
  });
}
