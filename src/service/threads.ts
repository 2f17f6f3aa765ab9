import type { ThreadSystem } from "../../actors/port.ts";
import type { Checkpoint } from "../model/checkpoint.ts";
import { ServiceError, threadNotFound } from "../model/errors.ts";
import { uuid7 } from "../model/ids.ts";
import type { JsonObject } from "../model/json.ts";
import type { ThreadKey, ThreadRecord } from "../model/thread.ts";
import type { Clock } from "../ports/clock.ts";
import type { Engine } from "../ports/engine.ts";
import type { Journal } from "../ports/journal.ts";
import type { Random } from "../ports/random.ts";
import { emptyState, stateOf, threadOf } from "./records.ts";
import { storableObject } from "./storable.ts";
import { within } from "./subgraphs.ts";

export interface NewThread {
  /** A UUID in lower case. */
  readonly thread_id?: string;
  readonly metadata?: JsonObject;
  /** What to do when the id is taken: `raise` (default) throws `thread.exists`, `do_nothing` answers what is there. */
  readonly if_exists?: "raise" | "do_nothing";
}

/** What of a state is wanted. */
export interface StateSelection {
  /** Only these keys of the state are read; undefined: all of them. */
  readonly keys?: readonly string[];
  /** With what the nodes wrote, in the metadata. */
  readonly writes: boolean;
  /** With the states of the subgraphs in its tasks. */
  readonly subgraphs?: boolean;
}

export interface Threads {
  /** @throws ServiceError `thread.exists`, `validation.failed`, `server.draining`, `storage.unavailable` */
  create(tenant: string, asked: NewThread): Promise<JsonObject>;
  /** The thread with its state. @throws ServiceError `thread.not_found` */
  get(key: ThreadKey): Promise<JsonObject>;
  /** The latest state, also of a thread that has none yet. @throws ServiceError `thread.not_found` */
  state(key: ThreadKey, selection: StateSelection): Promise<JsonObject>;
}

interface Deps {
  readonly system: ThreadSystem;
  readonly journal: Journal;
  readonly clock: Clock;
  readonly random: Random;
  readonly engine: Engine;
}

export function createThreads({ system, journal, clock, random, engine }: Deps): Threads {
  async function valuesOf(key: ThreadKey, thread: ThreadRecord): Promise<JsonObject | null> {
    if (thread.checkpoint === null) return null;
    return journal.values(key, await checkpointAt(journal, key, thread.checkpoint));
  }

  return {
    async create(tenant, asked) {
      const thread = asked.thread_id ?? uuid7(clock.now(), random.bytes(16));
      const key = { tenant, thread };
      const metadata = storableObject(asked.metadata, "metadata");
      const record = await system.create(key, { metadata, if_exists: asked.if_exists ?? "raise" });
      return threadOf(record, await valuesOf(key, record));
    },

    get: (key) => whole(journal, key, async (record) => threadOf(record, await valuesOf(key, record))),

    state: (key, { keys, writes: withWrites, subgraphs = false }) =>
      whole(journal, key, async (record) => {
        if (record.checkpoint === null) return emptyState;
        const checkpoint = await checkpointAt(journal, key, record.checkpoint);
        const wanted = keys?.filter((name) => Object.hasOwn(checkpoint.channels, name));
        const values = wanted?.length === 0 ? {} : await journal.values(key, checkpoint, wanted);
        const writes = await journal.writes(key, checkpoint.ns, checkpoint.id);
        const parts = { thread: key.thread, checkpoint, values, writes, withWrites };
        const inner = await within({ engine, journal, key, states: subgraphs, withWrites }, checkpoint);
        return stateOf(inner === undefined ? parts : { ...parts, within: inner });
      }),
  };
}

/** A thread that may be shown. @throws ServiceError `thread.not_found` also when it is a temporary one */
export async function threadAt(journal: Journal, key: ThreadKey): Promise<ThreadRecord> {
  const record = await journal.thread(key);
  if (record !== undefined && record.temporary === null) return record;
  throw threadNotFound(key.thread);
}

/**
 * Reads a thread with what its record refers to. A rollback in between takes that away: then it is all read once more. What
 * is missing while the thread stands still is damage.
 */
async function whole<T>(
  journal: Journal,
  key: ThreadKey,
  read: (record: ThreadRecord) => Promise<T>,
): Promise<T> {
  for (;;) {
    const record = await threadAt(journal, key);
    try {
      return await read(record);
    } catch (thrown) {
      if ((await threadAt(journal, key)).seq === record.seq) throw thrown;
    }
  }
}

/** A root checkpoint that a record names. @throws ServiceError `journal.damaged` when it is missing */
async function checkpointAt(journal: Journal, key: ThreadKey, id: string): Promise<Checkpoint> {
  const checkpoint = await journal.checkpoint(key, "", id);
  if (checkpoint !== undefined) return checkpoint;
  throw new ServiceError("journal.damaged", `Checkpoint ${id} of thread ${key.thread} is missing`);
}
