import { invalidField } from "../model/errors.ts";
import type {
  CheckpointHead,
  CheckpointSource,
  NewCheckpoint,
  PlannedTask,
  PendingTaskWrites,
} from "../model/checkpoint.ts";
import { isObject, type JsonObject } from "../model/json.ts";
import { childMachinePositionsAt } from "../model/machine-child.ts";
import type { CheckpointWithState, ExecutionServices } from "../ports/engine.ts";
import type { StateUpdate, StateWrite, StateUpdateResult } from "../ports/state-update.ts";
import { START } from "../graph/definition-checks.ts";
import { subgraphDefinitionAt, type GraphDefinition } from "../graph/definition.ts";
import { END } from "../graph/commands.ts";
import {
  applyUpdates,
  clearEphemeral,
  compareTasks,
  combineChanges,
  waitingData,
  planNext,
  planTasks,
  parseWaitingNodes,
  startTask,
  NextStepTriggers,
  type StateChange,
  type FinishedTask,
  type TaskOrigin,
  type WaitingNodes,
} from "../graph/superstep.ts";
import { someStateFaults } from "./graph-migration.ts";
import { withChildTasks } from "./child-machine-checkpoints.ts";
import { finishedTaskOf, NULL_TASK_ID, engineDataOfMachine } from "./superstep-state.ts";
import { normalizeInput, storedInput } from "./graph-input.ts";
import { lastNodesOf, lastNodesData } from "./last-nodes.ts";
import { baseStateOf, type UpdateTarget } from "./update-base-state.ts";
import {
  AS_NODE_COPY,
  inferAsNode,
  AS_NODE_INPUT,
  requireKnownNode,
  requireNoWrites,
  requireAsNode,
} from "./resolve-as-node.ts";
import { normalizeWrite, toServiceError, isEmptyWrite, type NormalizedWrite } from "./state-update-writes.ts";

/** The parts of the new checkpoint that depend on the kind of update. */
interface UpdateResult {
  readonly source: CheckpointSource;
  readonly writes: JsonObject | null;
  readonly next: readonly PlannedTask[];
  readonly applied: StateChange;
  readonly waiting: WaitingNodes;
  /** The nodes that count as the last ones to run; null if they are unknown. */
  readonly lastNodes: readonly string[] | null;
  /**
   * The keys that count as written by nodes. Used only in a subgraph, which returns these keys to its parent when it
   * ends.
   */
  readonly writtenKeys?: readonly string[];
  /**
   * The hash of the graph's current version, if the updated state conforms to it. Absent: the new checkpoint has the
   * hash of the checkpoint before it.
   */
  readonly graph?: string;
}

interface PreparedUpdate extends StateUpdate, UpdateTarget {
  readonly first: StateWrite;
  /** The namespace and the id of the checkpoint to make. `site.step` is the step of its tasks, which is the checkpoint's step plus 1. */
  readonly site: TaskOrigin;
}

/**
 * Computes the checkpoint of a state update by a client, as if the `as_node` nodes had run in a superstep. The rules of the
 * channels apply the writes, and the edges of the `as_node` nodes select the tasks to run next.
 * @throws ServiceError `graph.not_found`, `validation.failed`, `state.*`, with the names of the fields
 */
export function computeUpdatedState(
  root: GraphDefinition,
  update: StateUpdate,
  position: CheckpointWithState,
  source: ExecutionServices,
): StateUpdateResult {
  const definition = subgraphDefinitionAt(root, update.ns);
  const { ns, metadata, writes } = update;
  const [first] = writes;
  if (first === undefined) throw new TypeError("An update has at least one write");
  const { head } = position;
  const step = head === null ? (first.as_node === AS_NODE_INPUT ? -1 : 0) : head.step + 1;
  const id = source.checkpointId(step);
  const asked = { ...update, definition, position, first, site: { ns, checkpoint: id, step: step + 1 } };
  let made: UpdateResult;
  try {
    made = computeUpdate(asked);
  } catch (thrown) {
    throw toServiceError(thrown, `${first.at}values`);
  }
  const children = childMachinePositionsAt(head);
  const { machine } = definition;
  const checkpoint: NewCheckpoint = {
    id,
    parent: head?.id ?? null,
    ns,
    step,
    source: made.source,
    created_at: source.now(),
    run_id: null,
    metadata: ns === "" ? metadata : { ...metadata, parents: head?.metadata["parents"] ?? {} },
    writes: made.writes,
    next: machine === undefined ? made.next : withChildTasks(made.next, machine, children),
    engine: {
      ...engineDataOf(made, head),
      ...engineDataOfMachine(definition, made.applied.values, children),
    },
    graph: made.graph ?? head?.graph ?? definition.hash,
    changes: made.applied.changes,
  };
  return { checkpoint, values: made.applied.values };
}

function computeUpdate(asked: PreparedUpdate): UpdateResult {
  const { definition, writes, first } = asked;
  if (writes.length > 1)
    return nodeUpdate(
      asked,
      writes.map((write) => [write, requireAsNode(write)] as const),
    );
  switch (first.as_node) {
    case null:
      return isEmptyWrite(first)
        ? copyUpdate(asked, "update")
        : nodeUpdate(asked, [[first, inferAsNode(definition, asked.position.head, first)]]);
    case AS_NODE_COPY:
      requireNoWrites(first, AS_NODE_COPY);
      if (asked.position.head === null)
        throw invalidField(`${first.at}as_node`, "there is no state to copy yet");
      return copyUpdate(asked, "fork");
    case AS_NODE_INPUT:
      return inputUpdate(asked);
    case END:
      requireNoWrites(first, END);
      return endUpdate(asked);
    default:
      return nodeUpdate(asked, [[first, first.as_node]]);
  }
}

// --- kinds of update ---

/** An update that copies the checkpoint, with its planned tasks but without their pending writes. */
function copyUpdate({ position, site }: PreparedUpdate, source: CheckpointSource): UpdateResult {
  const { head, values } = position;
  return {
    source,
    ...copyPlannedTasks(head, site),
    applied: { values, changes: {} },
    ...waitingAndLast(head),
  };
}

const waitingAndLast = (head: CheckpointHead | null) => ({
  waiting: parseWaitingNodes(head?.engine ?? {}),
  lastNodes: lastNodesOf(head),
});

/** Plans the tasks of a checkpoint again, for a new checkpoint at `site`. */
export function copyPlannedTasks(
  head: CheckpointHead | null,
  site: TaskOrigin,
): { readonly next: readonly PlannedTask[]; readonly writes: JsonObject | null } {
  const triggers = new NextStepTriggers();
  for (const task of head?.next ?? []) {
    if (task.input !== undefined) triggers.sends.push({ node: task.name, input: task.input.value });
    else for (const trigger of task.triggers) triggers.addPull(task.name, trigger);
  }
  const next = planTasks(site, triggers.pulls, triggers.sends);
  // If the checkpoint has an input that was not applied yet, the input is in the checkpoint's writes, so the writes are
  // copied.
  return { next, writes: head?.next[0]?.name === START ? head.writes : null };
}

/** An update with `as_node` `__input__`: the next run applies the update as the input of the graph. */
function inputUpdate({ definition, position, first, site }: PreparedUpdate): UpdateResult {
  const { at, values } = first;
  if ((first.command ?? null) !== null)
    throw invalidField(`${at}command`, `must be null where as_node is "${AS_NODE_INPUT}"`);
  // Validates the input now, so that the next run does not fail when it applies the input.
  normalizeInput(definition, values, site.checkpoint, `${at}values`);
  const kept = isObject(values) ? storedInput(definition, values) : {};
  return {
    source: "input",
    writes: { [START]: kept },
    next: [startTask(site)],
    applied: { values: position.values, changes: {} },
    waiting: parseWaitingNodes(position.head?.engine ?? {}),
    lastNodes: null,
  };
}

/** An update with `as_node` `__end__`: applies the writes of finished tasks, and drops the other planned tasks. */
function endUpdate({ definition, position }: PreparedUpdate): UpdateResult {
  const { head, values } = position;
  const done = finishedTasks(position).map(({ update }) => update);
  return {
    source: "update",
    writes: null,
    next: [],
    applied: applyUpdates(definition, values, done),
    waiting: parseWaitingNodes({}),
    lastNodes: lastNodesOf(head),
  };
}

function nodeUpdate(
  asked: PreparedUpdate,
  written: readonly (readonly [StateWrite, string])[],
): UpdateResult {
  const { definition, position, latest, site } = asked;
  const read = written.map(([write, name], index) => {
    const node = requireKnownNode(definition, write, name, position.values);
    return normalizeWrite(definition, write, node, { ...site, step: site.step - 1 }, index);
  });
  const base = baseStateOf(asked, read);
  const done = latest ? finishedTasks(position) : [];
  const before = applyUpdates(
    definition,
    base.values,
    done.map(({ update }) => update),
  );
  const writers = read.map((one) => one.finishedTask(before.values));
  const after = applyUpdates(
    definition,
    before.values,
    read.flatMap(({ updates }) => updates),
  );
  const joined = { values: after.values, changes: combineChanges(before.changes, after.changes) };
  const cleared = clearEphemeral(definition, base.values, joined);
  const applied = { values: cleared.values, changes: combineChanges(base.changes, cleared.changes) };
  const misfits = base.changed ? someStateFaults({ definition, values: applied.values }) : [];
  if (misfits.length > 0) {
    const failed = base.failure === null ? "" : ` (its migrate function failed: ${base.failure})`;
    throw invalidField(
      `${asked.first.at}values`,
      `must repair the whole state, which another version of the graph made${failed}: ${misfits.join("; ")}`,
    );
  }
  const waiting = parseWaitingNodes(position.head?.engine ?? {});
  const ended = new Set(done.map(({ task }) => task.id));
  const unrun = (position.head?.next ?? []).filter(({ id }) => !ended.has(id));
  const planned = planNext(definition, site, [...done, ...writers], waiting, unrun);
  return {
    source: "update",
    writes: writesOf(read),
    ...planned,
    applied,
    lastNodes: read.map(({ name }) => name),
    writtenKeys: read.flatMap(({ name, updates }) => (name === START ? [] : updates.flatMap(Object.keys))),
    graph: definition.hash,
  };
}

/** The updates by node. A node with several writes has a list of updates. */
function writesOf(read: readonly NormalizedWrite[]): JsonObject {
  const byNode = new Map<string, unknown[]>();
  for (const { name, updates } of read) {
    const list = byNode.get(name) ?? [];
    list.push(...(updates.length === 0 ? [null] : updates));
    byNode.set(name, list);
  }
  return Object.fromEntries([...byNode].map(([name, list]) => [name, list.length === 1 ? list[0] : list]));
}

/**
 * The writes of the step's finished tasks, in the order in which they are applied. The writes of a command,
 * which belong to no task, come first.
 */
function finishedTasks({ head, writes }: CheckpointWithState): readonly FinishedTask[] {
  const writesByTask = new Map(writes.map((one) => [one.task, one]));
  const tasks = (head?.next ?? []).filter(({ id }) => writesByTask.get(id)?.result !== undefined);
  const ended = [...tasks]
    .sort(compareTasks)
    .map((task) => finishedTaskOf(task, writesByTask.get(task.id) as PendingTaskWrites));
  const given = writesByTask.get(NULL_TASK_ID);
  if (given?.result === undefined) return ended;
  const nobody = { id: NULL_TASK_ID, name: NULL_TASK_ID, path: [], triggers: [] };
  return [finishedTaskOf(nobody, given), ...ended];
}

function engineDataOf(
  { waiting, lastNodes, writtenKeys }: UpdateResult,
  head: CheckpointHead | null,
): JsonObject {
  if (head === null || head.ns === "") return { ...waitingData(waiting), ...lastNodesData(lastNodes) };
  const before = head.engine?.["wrote"];
  const keys = [...(Array.isArray(before) ? (before as string[]) : []), ...(writtenKeys ?? [])];
  return {
    ...waitingData(waiting),
    ...lastNodesData(lastNodes),
    ...(keys.length > 0 && { wrote: [...new Set(keys)] }),
  };
}
