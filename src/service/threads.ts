import type { ThreadSystem } from "../../actors/thread-system.ts";
import type { Checkpoint } from "../model/checkpoint.ts";
import { isSmall } from "../codec/json-pieces.ts";
import { ServiceError, threadNotFound } from "../model/errors.ts";
import type { JsonObject } from "../model/json.ts";
import type { ThreadKey, ThreadLifetime, ThreadRecord, TtlStrategy } from "../model/thread.ts";
import type { Catalog } from "../ports/catalog.ts";
import type { Engine } from "../ports/engine.ts";
import { andThen, type Eventually } from "../ports/eventually.ts";
import type { Journal } from "../ports/journal.ts";
import { threadOf, ttlOf } from "./api-records.ts";
import { noState, snapshot, type StateSelection } from "./state-snapshot.ts";
import { storableObject } from "./storable-values.ts";
import { writesOf, type Superstep } from "./bulk-updates.ts";
import {
  countThreads,
  searchThreads,
  type ThreadReading,
  type ThreadsAsked,
  type ThreadsPage,
  type ThreadsQuery,
} from "./thread-search.ts";

export interface NewThread {
  /** A UUID in lower case. */
  readonly thread_id?: string;
  readonly metadata?: JsonObject;
  /** What to do when the id is taken: `raise` (default) throws `thread.exists`, `do_nothing` answers what is there. */
  readonly if_exists?: "raise" | "do_nothing";
  /** How its state comes about, superstep by superstep; the metadata's `graph_id` says of which graph. */
  readonly supersteps?: readonly Superstep[];
  /** How long it is kept; default: what the server is configured to. */
  readonly ttl?: ThreadLifetime;
}

/** What is to become different of a thread. */
export interface ThreadUpdate {
  /** Takes the place of what the thread has under the same names. */
  readonly metadata?: JsonObject;
  readonly ttl?: ThreadLifetime;
}

export interface Threads {
  /**
   * Makes a thread, with its state if it has one: all of it or nothing.
   * @throws ServiceError `thread.exists`, `validation.failed`, `server.draining`, `storage.unavailable`; with supersteps also what
   *   the engine refuses
   */
  create(tenant: string, asked: NewThread): Promise<JsonObject>;
  /** The thread with its state; `withTtl`: and with how long it is kept. @throws ServiceError `thread.not_found` */
  get(key: ThreadKey, withTtl?: boolean): Promise<JsonObject>;
  search(tenant: string, query: ThreadsQuery): Promise<ThreadsPage>;
  /** How many there are, exactly. */
  count(tenant: string, asked: ThreadsAsked): Promise<number>;
  /** @throws ServiceError `thread.not_found`, `validation.failed`, `server.draining`, `storage.unavailable` */
  update(key: ThreadKey, update: ThreadUpdate): Promise<JsonObject>;
  /** Ends what runs on it, and deletes it. Throws as {@link update} does. */
  remove(key: ThreadKey): Promise<void>;
  /** Does that to all threads whose last run was one of the assistant's, by their metadata. Throws as {@link update} does. */
  removeOf(tenant: string, assistant: string): Promise<void>;
  /** Makes another thread with its state and history, and shows that. Throws as {@link update} does. */
  copy(key: ThreadKey): Promise<JsonObject>;
  /**
   * Deletes these threads, or of each all checkpoints but the latest. Those that are not there are passed over, and so are
   * those at work where they are to be kept. Resolves with how many it was done to.
   */
  prune(tenant: string, threads: readonly string[], strategy: TtlStrategy): Promise<number>;
  /** The latest state, also of a thread that has none yet. @throws ServiceError `thread.not_found` */
  state(key: ThreadKey, selection: StateSelection): Promise<JsonObject>;
  /**
   * The same as JSON; kept where it is short and nothing is left to run, for those that ask again and again. Where it is large, the
   * state itself: it is written piece by piece.
   */
  stateText(key: ThreadKey, selection: StateSelection): Promise<string | JsonObject>;
}

interface Deps {
  readonly system: ThreadSystem;
  readonly journal: Journal;
  readonly catalog: Catalog;
  readonly newId: () => string;
  readonly engine: Engine;
  /** Deletes the crons whose runs are on a thread, which is gone. */
  readonly forgetCrons: (key: ThreadKey) => Promise<void>;
  /** How long threads are kept where nothing is said; absent: for good. */
  readonly threadTtl?: ThreadLifetime | undefined;
}

/** The longest state that is kept as text, in characters. There are as many as the journal has records at hand. */
const KEPT = 16 * 1024;

export function createThreads(deps: Deps): Threads {
  const { system, journal, catalog, newId, engine, forgetCrons, threadTtl } = deps;
  /** By the record that they are of: the journal shows another one once anything of the thread has changed. */
  const texts = new WeakMap<ThreadRecord, string>();

  async function latest(key: ThreadKey, { checkpoint: id }: ThreadRecord, selection: StateSelection) {
    if (id === null) return noState(selection);
    return snapshot({ engine, journal, key, selection }, await checkpointAt(journal, key, id));
  }

  async function valuesOf(
    key: ThreadKey,
    thread: ThreadRecord,
    keys?: readonly string[],
  ): Promise<JsonObject | null> {
    if (thread.checkpoint === null) return null;
    return journal.values(key, await checkpointAt(journal, key, thread.checkpoint), keys);
  }

  const shown = async (key: ThreadKey, record: ThreadRecord) => threadOf(record, await valuesOf(key, record));

  async function remove(key: ThreadKey): Promise<void> {
    await system.threads.remove(key);
    await forgetCrons(key);
  }

  const reading: ThreadReading = {
    values: (tenant, thread, keys) => valuesOf({ tenant, thread: thread.thread_id }, thread, keys),
    async show(tenant, thread, withValues) {
      if (!withValues) return threadOf(thread, null);
      const key = { tenant, thread: thread.thread_id };
      try {
        return await shown(key, thread);
      } catch {
        // It has changed since it was found.
        return whole(journal, key, (record) => shown(key, record)).catch(ifThere);
      }
    },
  };

  return {
    async create(tenant, asked) {
      const thread = asked.thread_id ?? newId();
      const key = { tenant, thread };
      const metadata = storableObject(asked.metadata, "metadata");
      const { if_exists = "raise", ttl = threadTtl ?? null, supersteps = [] } = asked;
      const record = await system.create(key, { metadata, if_exists, ttl, supersteps: writesOf(supersteps) });
      return shown(key, record);
    },

    get: (key, withTtl = false) =>
      whole(journal, key, async (record) => {
        const thread = await shown(key, record);
        return withTtl ? { ...thread, ttl: ttlOf(record) } : thread;
      }),

    search: (tenant, query) => searchThreads(catalog, reading, tenant, query),

    count: (tenant, asked) => countThreads(catalog, reading, tenant, asked),

    async update(key, { metadata, ttl }) {
      const change = metadata && { metadata: storableObject(metadata, "metadata") };
      await system.threads.update(key, { ...change, ...(ttl && { ttl }) });
      return whole(journal, key, (record) => shown(key, record));
    },

    remove,

    async removeOf(tenant, assistant) {
      const metadata = { assistant_id: assistant };
      const page = { metadata, limit: 100, offset: 0, sort_by: "created_at", sort_order: "asc" } as const;
      for (;;) {
        // What was found is gone by the next look: the first page is always the next one.
        const { threads } = await catalog.searchThreads(tenant, page);
        if (threads.length === 0) return;
        for (const { thread_id: thread } of threads) await remove({ tenant, thread }).catch(ifThere);
      }
    },

    async copy(key) {
      const to = { tenant: key.tenant, thread: newId() };
      const record = await system.threads.copy(key, to);
      return shown(to, record);
    },

    async prune(tenant, threads, strategy) {
      let count = 0;
      for (const thread of new Set(threads)) {
        const key = { tenant, thread };
        const done = strategy === "delete" ? remove(key).then(() => true) : system.threads.prune(key);
        if (await done.catch(ifThere)) count++;
      }
      return count;
    },

    state: (key, selection) => whole(journal, key, (record) => latest(key, record, selection)),

    async stateText(key, selection) {
      const plain = selection.fields === undefined && selection.subgraphs !== true;
      if (plain) {
        const known = texts.get(await threadAt(journal, key));
        if (known !== undefined) return known;
      }
      return whole(journal, key, async (record) => {
        const state = await latest(key, record, selection);
        if (!isSmall(state)) return state;
        const text = JSON.stringify(state);
        if (!plain || text.length > KEPT) return text;
        // Where tasks are planned, the state also tells what they left and whether they are graphs: the record does not.
        if ((state["next"] as readonly unknown[]).length === 0) texts.set(record, text);
        return text;
      });
    },
  };
}

/** What is not there is no failure. */
function ifThere(cause: unknown): undefined {
  if (cause instanceof ServiceError && cause.code === "thread.not_found") return undefined;
  throw cause;
}

/** A thread that may be shown. @throws ServiceError `thread.not_found` also when it is a temporary one */
export function threadAt(journal: Journal, key: ThreadKey): Eventually<ThreadRecord> {
  return andThen(journal.thread(key), (record) => {
    if (record !== undefined && record.temporary === null) return record;
    throw threadNotFound(key.thread);
  });
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
