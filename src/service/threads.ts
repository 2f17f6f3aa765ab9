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
import { emptyState, threadOf } from "./records.ts";
import { snapshot, type StateSelection } from "./snapshot.ts";
import { storableObject } from "./storable.ts";
import { writesOf, type Superstep } from "./supersteps.ts";

export interface NewThread {
  /** A UUID in lower case. */
  readonly thread_id?: string;
  readonly metadata?: JsonObject;
  /** What to do when the id is taken: `raise` (default) throws `thread.exists`, `do_nothing` answers what is there. */
  readonly if_exists?: "raise" | "do_nothing";
  /** How its state comes about, superstep by superstep; the metadata's `graph_id` says of which graph. */
  readonly supersteps?: readonly Superstep[];
}

export interface Threads {
  /**
   * Makes a thread, with its state if it has one: all of it or nothing.
   * @throws ServiceError `thread.exists`, `validation.failed`, `server.draining`, `storage.unavailable`; with supersteps also what
   *   the engine refuses
   */
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
      const { if_exists = "raise", supersteps = [] } = asked;
      const record = await system.create(key, { metadata, if_exists, supersteps: writesOf(supersteps) });
      return threadOf(record, await valuesOf(key, record));
    },

    get: (key) => whole(journal, key, async (record) => threadOf(record, await valuesOf(key, record))),

    state: (key, selection) =>
      whole(journal, key, async (record) => {
        if (record.checkpoint === null) return emptyState;
        const checkpoint = await checkpointAt(journal, key, record.checkpoint);
        return snapshot({ engine, journal, key, selection }, checkpoint);
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
export async function whole<T>(
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
export async function checkpointAt(journal: Journal, key: ThreadKey, id: string): Promise<Checkpoint> {
  const checkpoint = await journal.checkpoint(key, "", id);
  if (checkpoint !== undefined) return checkpoint;
  throw new ServiceError("journal.damaged", `Checkpoint ${id} of thread ${key.thread} is missing`);
}
