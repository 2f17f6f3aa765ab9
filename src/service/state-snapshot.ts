import type { Checkpoint } from "../model/checkpoint.ts";
import type { JsonObject } from "../model/json.ts";
import type { ThreadKey } from "../model/thread.ts";
import type { Engine } from "../ports/engine.ts";
import type { Journal } from "../ports/journal.ts";
import { emptyState, stateOf, type Within } from "./api-records.ts";

/** What of a state is wanted. */
export interface StateSelection {
  /** Only these of its fields are shown; undefined: all of them. */
  readonly fields?: ReadonlySet<string>;
  /** Only these keys of its values are read; undefined: all of them. */
  readonly keys?: readonly string[];
  /** With the states of the subgraphs in its tasks. */
  readonly subgraphs?: boolean;
}

export interface Asked {
  readonly engine: Engine;
  readonly journal: Journal;
  readonly key: ThreadKey;
  readonly selection: StateSelection;
}

/**
 * The state at a checkpoint as the wire shows it. `later`: the next newer one of its namespace; undefined at the latest, where
 * tasks that have ended wait for their siblings.
 */
export async function snapshot(
  asked: Asked,
  checkpoint: Checkpoint,
  later?: Checkpoint,
): Promise<JsonObject> {
  const { journal, key, selection } = asked;
  const { fields, keys } = selection;
  const isShown = (...names: readonly string[]) =>
    fields === undefined || names.some((name) => fields.has(name));
  const wanted = isShown("values")
    ? keys?.filter((name) => Object.hasOwn(checkpoint.channels, name))
    : ([] as const);
  const values = wanted?.length === 0 ? {} : await journal.values(key, checkpoint, wanted);
  const looks = isShown("next", "tasks", "interrupts");
  const writes = looks ? await journal.writes(key, checkpoint.ns, checkpoint.id) : [];
  const inner = isShown("tasks") ? await within(asked, checkpoint) : undefined;
  const state = stateOf({
    thread: key.thread,
    checkpoint,
    values,
    writes,
    withWrites: isShown("metadata"),
    ...(inner && { within: inner }),
    ...(later && { later }),
  });
  return chosen(state, selection);
}

/** Of a state the fields that are wanted. */
function chosen(state: JsonObject, { fields }: StateSelection): JsonObject {
  if (fields === undefined) return state;
  return Object.fromEntries(Object.entries(state).filter(([name]) => fields.has(name)));
}

/** The state of what has none yet. */
export const noState = (selection: StateSelection): JsonObject => chosen(emptyState, selection);

/** The subgraphs in the tasks that a checkpoint plans, by task; undefined where there are none. */
async function within(
  asked: Asked,
  checkpoint: Checkpoint,
): Promise<ReadonlyMap<string, Within> | undefined> {
  const graph = checkpoint.metadata["graph_id"];
  let found: Map<string, Within> | undefined;
  for (const { id, name } of checkpoint.next) {
    if (typeof graph !== "string" || !asked.engine.isSubgraph(graph, checkpoint.ns, name)) continue;
    const ns = `${checkpoint.ns === "" ? "" : `${checkpoint.ns}|`}${name}:${id}`;
    if (asked.selection.subgraphs !== true) (found ??= new Map()).set(id, { ns });
    else {
      const selection = { subgraphs: true };
      // oxlint-disable-next-line no-await-in-loop -- they are few, and each is a read of its own
      (found ??= new Map()).set(id, { ns, state: await latestAt({ ...asked, selection }, ns) });
    }
  }
  return found;
}

/** The latest state in a subgraph's namespace; an empty one where the subgraph has not begun. */
export async function latestAt(asked: Asked, ns: string): Promise<JsonObject> {
  const [checkpoint] = await asked.journal.history(asked.key, { ns, limit: 1 });
  if (checkpoint === undefined) return noState(asked.selection);
  return snapshot(asked, checkpoint);
}
