import type { Checkpoint } from "../model/checkpoint.ts";
import type { JsonObject } from "../model/json.ts";
import type { ThreadKey } from "../model/thread.ts";
import type { Engine } from "../ports/engine.ts";
import type { Journal } from "../ports/journal.ts";
import { emptyState, stateOf, type Within } from "./records.ts";

interface Asked {
  readonly engine: Engine;
  readonly journal: Journal;
  readonly key: ThreadKey;
  /** Their states as well, and those of what is within them. */
  readonly states: boolean;
  readonly withWrites: boolean;
}

/** The subgraphs in the tasks that a checkpoint plans, by task; undefined where there are none. */
export async function within(
  asked: Asked,
  checkpoint: Checkpoint,
): Promise<ReadonlyMap<string, Within> | undefined> {
  const graph = checkpoint.metadata["graph_id"];
  let found: Map<string, Within> | undefined;
  for (const { id, name } of checkpoint.next) {
    if (typeof graph !== "string" || !asked.engine.isSubgraph(graph, checkpoint.ns, name)) continue;
    const ns = `${checkpoint.ns === "" ? "" : `${checkpoint.ns}|`}${name}:${id}`;
    // oxlint-disable-next-line no-await-in-loop -- they are few, and each is a read of its own
    (found ??= new Map()).set(id, asked.states ? { ns, state: await latestAt(asked, ns) } : { ns });
  }
  return found;
}

/** The latest state in a namespace; an empty one where the subgraph has not begun. */
async function latestAt(asked: Asked, ns: string): Promise<JsonObject> {
  const { journal, key, withWrites } = asked;
  const [checkpoint] = await journal.history(key, { ns, limit: 1 });
  if (checkpoint === undefined) return emptyState;
  const values = await journal.values(key, checkpoint);
  const writes = await journal.writes(key, ns, checkpoint.id);
  const inner = await within(asked, checkpoint);
  const parts = { thread: key.thread, checkpoint, values, writes, withWrites };
  return stateOf(inner === undefined ? parts : { ...parts, within: inner });
}
