import type {
  CheckpointHead,
  CheckpointSource,
  NewCheckpoint,
  PlannedTask,
  TaskWrites,
} from "../model/checkpoint.ts";
import { isObject, type JsonObject } from "../model/json.ts";
import type { Position, Source } from "../ports/engine.ts";
import type { StateUpdate, StateWrite, Updated } from "../ports/state-update.ts";
import { START } from "../graph/definition-checks.ts";
import { subgraphAt, type Definition } from "../graph/definition.ts";
import { END } from "../graph/commands.ts";
import {
  applyUpdates,
  clearBrief,
  inOrder,
  joinChanges,
  keptOf,
  planNext,
  planTasks,
  readWaiting,
  startTask,
  Triggers,
  type Applied,
  type Left,
  type Site,
  type Waiting,
} from "../graph/superstep.ts";
import { misfitsOf } from "./graph-migration.ts";
import { leftOf, NO_TASK } from "./superstep-state.ts";
import { readInput, storedInput } from "./graph-input.ts";
import { lastRan, ranLast } from "./last-nodes.ts";
import { baseOf, type Ground } from "./base-state.ts";
import { COPY, inferred, INPUT, known, mustWriteNothing, named } from "./as-node.ts";
import { invalid, readWrite, refusalFrom, writesNothing, type ReadWrite } from "./normalized-writes.ts";

/** The result of one kind of update; the other fields of the checkpoint are the same for all kinds. */
interface Made {
  readonly source: CheckpointSource;
  readonly writes: JsonObject | null;
  readonly next: readonly PlannedTask[];
  readonly applied: Applied;
  readonly waiting: Waiting;
  /** The nodes that count as the last to run; null if unknown. */
  readonly last: readonly string[] | null;
  /** In a subgraph: the keys that count as written by its nodes. */
  readonly wrote?: readonly string[];
  /** The hash of the graph, if the state was migrated to its current version. */
  readonly graph?: string;
}

interface Asked extends StateUpdate, Ground {
  readonly first: StateWrite;
  /** The namespace and id of the checkpoint to make; `step` is that of its tasks, one after the checkpoint's. */
  readonly site: Site;
}

/**
 * Computes a superstep that no run makes. The writes are applied by the channels' rules; the edges of the `as_node` nodes
 * select the tasks to run next.
 * @throws ServiceError `graph.not_found`, `validation.failed`, `state.*`, with the names of the fields
 */
export function updateState(
  root: Definition,
  update: StateUpdate,
  position: Position,
  source: Source,
): Updated {
  const definition = subgraphAt(root, update.ns);
  const { ns, metadata, writes } = update;
  const [first] = writes;
  if (first === undefined) throw new TypeError("An update has at least one write");
  const { head } = position;
  const step = head === null ? (first.as_node === INPUT ? -1 : 0) : head.step + 1;
  const id = source.checkpointId(step);
  const asked = { ...update, definition, position, first, site: { ns, checkpoint: id, step: step + 1 } };
  let made: Made;
  try {
    made = make(asked);
  } catch (thrown) {
    throw refusalFrom(thrown, `${first.at}values`);
  }
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
    next: made.next,
    engine: engineOf(made, head),
    graph: made.graph ?? head?.graph ?? definition.hash,
    changes: made.applied.changes,
  };
  return { checkpoint, values: made.applied.values };
}

function make(asked: Asked): Made {
  const { definition, writes, first } = asked;
  if (writes.length > 1)
    return byNodes(
      asked,
      writes.map((write) => [write, named(write)] as const),
    );
  switch (first.as_node) {
    case null:
      return writesNothing(first)
        ? same(asked, "update")
        : byNodes(asked, [[first, inferred(definition, asked.position.head, first)]]);
    case COPY:
      mustWriteNothing(first, COPY);
      if (asked.position.head === null) throw invalid(`${first.at}as_node`, "there is no state to copy yet");
      return same(asked, "fork");
    case INPUT:
      return input(asked);
    case END:
      mustWriteNothing(first, END);
      return end(asked);
    default:
      return byNodes(asked, [[first, known(definition, first, first.as_node)]]);
  }
}

// --- kinds of update ---

/** A copy of the checkpoint, with its planned tasks and without their pending writes. */
function same({ position, site }: Asked, source: CheckpointSource): Made {
  const { head, values } = position;
  return { source, ...again(head, site), applied: { values, changes: {} }, ...standing(head) };
}

const standing = (head: CheckpointHead | null) => ({
  waiting: readWaiting(head?.engine ?? {}),
  last: lastRan(head),
});

/** Plans the tasks of a checkpoint again, for a new checkpoint at `site`. */
export function again(
  head: CheckpointHead | null,
  site: Site,
): { readonly next: readonly PlannedTask[]; readonly writes: JsonObject | null } {
  const triggers = new Triggers();
  for (const task of head?.next ?? []) {
    if (task.input !== undefined) triggers.sends.push({ node: task.name, input: task.input.value });
    else for (const trigger of task.triggers) triggers.pull(task.name, trigger);
  }
  const next = planTasks(site, triggers.pulls, triggers.sends);
  // An input that is not yet applied stays in the writes of the checkpoint.
  return { next, writes: head?.next[0]?.name === START ? head.writes : null };
}

/** An update as `__input__`: the next run applies it as its input. */
function input({ definition, position, first, site }: Asked): Made {
  const { at, values } = first;
  if ((first.command ?? null) !== null)
    throw invalid(`${at}command`, `must be null where as_node is "${INPUT}"`);
  // Validated now, so that the run does not fail when it applies the input.
  readInput(definition, values, site.checkpoint, `${at}values`);
  const kept = isObject(values) ? storedInput(definition, values) : {};
  return {
    source: "input",
    writes: { [START]: kept },
    next: [startTask(site)],
    applied: { values: position.values, changes: {} },
    waiting: readWaiting(position.head?.engine ?? {}),
    last: null,
  };
}

/** An update as `__end__`: drops the planned tasks and applies the writes of those that have finished. */
function end({ definition, position }: Asked): Made {
  const { head, values } = position;
  const done = finished(position).map(({ update }) => update);
  return {
    source: "update",
    writes: null,
    next: [],
    applied: applyUpdates(definition, values, done),
    waiting: readWaiting({}),
    last: lastRan(head),
  };
}

function byNodes(asked: Asked, written: readonly (readonly [StateWrite, string])[]): Made {
  const { definition, position, latest, site } = asked;
  const read = written.map(([write, name], index) => {
    known(asked.definition, write, name);
    return readWrite(definition, write, name, { ...site, step: site.step - 1 }, index);
  });
  const base = baseOf(asked, read);
  const done = latest ? finished(position) : [];
  const before = applyUpdates(
    definition,
    base.values,
    done.map(({ update }) => update),
  );
  const lefts = read.map((one) => one.leftAt(before.values));
  const after = applyUpdates(
    definition,
    before.values,
    read.flatMap(({ updates }) => updates),
  );
  const joined = { values: after.values, changes: joinChanges(before.changes, after.changes) };
  const cleared = clearBrief(definition, base.values, joined);
  const applied = { values: cleared.values, changes: joinChanges(base.changes, cleared.changes) };
  const misfits = base.changed ? misfitsOf({ definition, values: applied.values }) : [];
  if (misfits.length > 0) {
    const failed = base.failure === null ? "" : ` (its migrate function failed: ${base.failure})`;
    throw invalid(
      `${asked.first.at}values`,
      `must mend all of the state, which another form of the graph has left${failed}: ${misfits.join("; ")}`,
    );
  }
  const waiting = readWaiting(position.head?.engine ?? {});
  const planned = planNext(definition, site, [...done, ...lefts], waiting);
  return {
    source: "update",
    writes: writesOf(read),
    ...planned,
    applied,
    last: read.map(({ name }) => name),
    wrote: read.flatMap(({ name, updates }) => (name === START ? [] : updates.flatMap(Object.keys))),
    graph: definition.hash,
  };
}

/** The updates by node: a list for a node that wrote several times. */
function writesOf(read: readonly ReadWrite[]): JsonObject {
  const byNode = new Map<string, unknown[]>();
  for (const { name, updates } of read) {
    const list = byNode.get(name) ?? [];
    list.push(...(updates.length === 0 ? [null] : updates));
    byNode.set(name, list);
  }
  return Object.fromEntries([...byNode].map(([name, list]) => [name, list.length === 1 ? list[0] : list]));
}

/** The writes of the step's finished tasks, in the order in which they are applied. */
function finished({ head, writes }: Position): readonly Left[] {
  const left = new Map(writes.map((one) => [one.task, one]));
  const tasks = (head?.next ?? []).filter(({ id }) => left.get(id)?.result !== undefined);
  const ended = [...tasks].sort(inOrder).map((task) => leftOf(task, left.get(task.id) as TaskWrites));
  const given = left.get(NO_TASK);
  if (given?.result === undefined) return ended;
  const nobody = { id: NO_TASK, name: NO_TASK, path: [], triggers: [] };
  return [leftOf(nobody, given), ...ended];
}

function engineOf({ waiting, last, wrote }: Made, head: CheckpointHead | null): JsonObject {
  if (head === null || head.ns === "") return { ...keptOf(waiting), ...ranLast(last) };
  const before = head.engine?.["wrote"];
  const keys = [...(Array.isArray(before) ? (before as string[]) : []), ...(wrote ?? [])];
  return { ...keptOf(waiting), ...ranLast(last), ...(keys.length > 0 && { wrote: [...new Set(keys)] }) };
}
