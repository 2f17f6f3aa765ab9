import type { Checkpoint, PendingTaskWrites } from "../model/checkpoint.ts";
import type { PlainError } from "../model/errors.ts";
import type { JsonObject } from "../model/json.ts";
import {
  type ChildPosition,
  childMachinePositionsAt,
  childrenWithin,
  rootSegmentOf,
} from "../model/machine-child.ts";
import type { ThreadKey } from "../model/thread.ts";
import type { Engine } from "../ports/engine.ts";
import type { Journal } from "../ports/journal.ts";
import { emptyApiState, apiChildTask, apiState, type TaskSubgraph } from "./api-records.ts";

/** The parts of a state to return. */
export interface StateProjection {
  /** Only these fields of the state; undefined: all. */
  readonly fields?: ReadonlySet<string>;
  /** Only these keys of the state's `values`; undefined: all. */
  readonly keys?: readonly string[];
  /** Only these members of the state's `metadata`; undefined: all. */
  readonly metadata?: ReadonlySet<string>;
  /** True: each task that runs a subgraph has the subgraph's state. */
  readonly subgraphs?: boolean;
  /** The largest number of elements of each list in `values`: of a longer list, only the last ones are returned. Undefined: no limit. */
  readonly listLimit?: number;
}

export interface SnapshotContext {
  readonly engine: Engine;
  readonly journal: Journal;
  readonly key: ThreadKey;
  readonly projection: StateProjection;
  /** The child machines, at all levels, of the machine whose state is read. */
  readonly children?: readonly ChildPosition[];
}

/**
 * The state at a checkpoint as the API shows it. `later`: the next newer checkpoint of the same namespace; undefined if there is none.
 * Without it, finished tasks of the checkpoint may still wait for other tasks of their superstep.
 */
export async function stateSnapshot(
  context: SnapshotContext,
  checkpoint: Checkpoint,
  later?: Checkpoint,
): Promise<JsonObject> {
  const { journal, key, projection } = context;
  const { fields, keys } = projection;
  const isShown = (...names: readonly string[]) =>
    fields === undefined || names.some((name) => fields.has(name));
  const wanted = isShown("values")
    ? keys?.filter((name) => Object.hasOwn(checkpoint.channels, name))
    : ([] as const);
  const whole = wanted?.length === 0 ? {} : await journal.sharedValues(key, checkpoint, wanted);
  const { values, list_lengths } = shortenLists(whole, projection.listLimit);
  const looks = isShown("next", "tasks", "interrupts");
  const writes = looks ? await journal.writes(key, checkpoint.ns, checkpoint.id) : [];
  const inner = isShown("tasks") ? await within(context, checkpoint) : undefined;
  const state = apiState({
    thread: key.thread,
    checkpoint,
    values,
    writes,
    withWrites: isShown("metadata") && projection.metadata?.has("writes") !== false,
    ...(inner && { within: inner }),
    ...(later && { later }),
  });
  const children = isShown("tasks") ? await childTasks(context, checkpoint, writes) : [];
  const shown = chosen(
    children.length === 0
      ? state
      : { ...state, tasks: [...(state["tasks"] as readonly unknown[]), ...children] },
    projection,
  );
  return list_lengths === undefined ? shown : { ...shown, list_lengths };
}

/**
 * Shortens each list among the values to its last `limit` elements. `list_lengths` has the lengths that the shortened lists had before, by
 * name; it is undefined if no limit is given.
 */
function shortenLists(
  values: JsonObject,
  limit: number | undefined,
): { readonly values: JsonObject; readonly list_lengths?: JsonObject } {
  if (limit === undefined) return { values };
  const long = Object.entries(values).filter(
    (entry): entry is [string, readonly unknown[]] => Array.isArray(entry[1]) && entry[1].length > limit,
  );
  return {
    values: { ...values, ...Object.fromEntries(long.map(([name, list]) => [name, list.slice(-limit)])) },
    list_lengths: Object.fromEntries(long.map(([name, { length }]) => [name, length])),
  };
}

function chosen(state: JsonObject, { fields, metadata }: StateProjection): JsonObject {
  if (fields === undefined) return state;
  const shown = onlyMembers(state, fields);
  if (metadata === undefined) return shown;
  return { ...shown, metadata: onlyMembers(shown["metadata"] as JsonObject, metadata) };
}

/** Of a subgraph's state, all fields are returned, whichever of the root graph's are. */
const projectionOfSubgraph = ({ listLimit }: StateProjection): StateProjection => ({
  subgraphs: true,
  ...(listLimit !== undefined && { listLimit }),
});

const onlyMembers = (object: JsonObject, names: ReadonlySet<string>): JsonObject =>
  Object.fromEntries(Object.entries(object).filter(([name]) => names.has(name)));

/** The state of a thread or subgraph that has no checkpoint yet. */
export const emptySnapshot = (projection: StateProjection): JsonObject => chosen(emptyApiState, projection);

/** For each planned task of a checkpoint whose node is a subgraph: the subgraph, by task id. Undefined if there is no such task. */
async function within(
  context: SnapshotContext,
  checkpoint: Checkpoint,
): Promise<ReadonlyMap<string, TaskSubgraph> | undefined> {
  const graph = checkpoint.metadata["graph_id"];
  let found: Map<string, TaskSubgraph> | undefined;
  for (const { id, name } of checkpoint.next) {
    if (typeof graph !== "string" || !context.engine.isSubgraph(graph, checkpoint.ns, name)) continue;
    const ns = `${checkpoint.ns === "" ? "" : `${checkpoint.ns}|`}${name}:${id}`;
    if (context.projection.subgraphs !== true) (found ??= new Map()).set(id, { ns });
    else {
      const projection = projectionOfSubgraph(context.projection);
      // oxlint-disable-next-line no-await-in-loop -- a task has few subgraphs, and parallel reads would not be faster
      (found ??= new Map()).set(id, { ns, state: await latestSnapshot({ ...context, projection }, ns) });
    }
  }
  return found;
}

/** The child machines of the machine that made a checkpoint, as tasks. */
async function childTasks(
  context: SnapshotContext,
  { ns, engine, next }: Checkpoint,
  writes: readonly PendingTaskWrites[],
): Promise<readonly JsonObject[]> {
  const { journal, key, projection, children = childMachinePositionsAt({ engine }) } = context;
  const errors = new Map<string, PlainError | null>();
  for (const { task, error } of writes) {
    const place = error === null ? undefined : next.find(({ id }) => id === task)?.child?.ns;
    if (place !== undefined) errors.set(rootSegmentOf(place), error);
  }
  const tasks: JsonObject[] = [];
  for (const { own, child } of childrenWithin(children, ns)) {
    // oxlint-disable-next-line no-await-in-loop -- a machine has few children, and parallel reads would not be faster
    const made =
      projection.subgraphs === true ? await journal.checkpoint(key, child.ns, child.id) : undefined;
    const inner = { ...context, projection: projectionOfSubgraph(projection), children };
    // oxlint-disable-next-line no-await-in-loop -- as above
    const state = made === undefined ? null : await stateSnapshot(inner, made);
    tasks.push(apiChildTask(key.thread, own, { ns: child.ns, state }, errors.get(child.ns)));
  }
  return tasks;
}

/** The latest state of a subgraph's namespace; an empty state when the subgraph has not started. */
export async function latestSnapshot(context: SnapshotContext, ns: string): Promise<JsonObject> {
  const [checkpoint] = await context.journal.history(context.key, { ns, limit: 1 });
  if (checkpoint === undefined) return emptySnapshot(context.projection);
  return stateSnapshot(context, checkpoint);
}
