import type { ChannelChange, CheckpointHead, NewCheckpoint } from "../model/checkpoint.ts";
import type { JsonObject } from "../model/json.ts";
import { type ChildPosition, childMachinePositionsAt } from "../model/machine-child.ts";
import type { Emission, ExecutionServices } from "../ports/engine.ts";
import type { ChangedChildMachine, GraphDefinition } from "../graph/definition.ts";
import { taskNamespace } from "../graph/interrupts.ts";
import { pullTask, pushTask } from "../graph/superstep.ts";

/** The node whose updates the checkpoints of children show. */
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
 * The checkpoints of child machines after a step, each in a namespace of its own, and the facts that show them. They are for readers: a run
 * continues from the snapshots in the root machine's checkpoint.
 */
export function childMachineCheckpoints(
  changed: readonly ChangedChildMachine[],
  parts: Parts,
): ChildMachineStep {
  const { definition, head, run, metadata, source } = parts;
  const positions = new Map(childMachinePositionsAt(head).map((one) => [one.start, one]));
  const checkpoints: NewCheckpoint[] = [];
  const emissions: Emission[] = [];
  for (const { start, parent, name, values, next: nodes } of changed) {
    const above = parent === null ? undefined : positions.get(parent);
    const before = positions.get(start);
    const begins = { ns: above?.ns ?? "", checkpoint: head.id, step: head.step + 1 };
    const ns = before?.ns ?? taskNamespace(begins.ns, name, pushTask(begins, name, start, null).id);
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
      next: nodes.map((node) => pullTask({ ns, checkpoint: id, step: step + 1 }, node, [])),
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
    emissions.push({ fact: { t: "checkpoint", id, ns, step, input: false }, values, head: made });
  }
  return { checkpoints, emissions, positions: [...positions.values()] };
}
