import type { ThreadSystem } from "../../actors/thread-system-interface.ts";
import type { Checkpoint } from "../model/checkpoint.ts";
import { isSmallJson } from "../codec/large-json.ts";
import { ServiceError, threadNotFound } from "../model/errors.ts";
import type { JsonObject } from "../model/json.ts";
import { type Permission, type Permits, permitsOf } from "../model/permitted-resources.ts";
import {
  isPermitted,
  type ThreadKey,
  type ThreadLifetime,
  type ThreadRecord,
  type TtlStrategy,
} from "../model/thread.ts";
import type { Catalog } from "../ports/catalog.ts";
import type { Engine } from "../ports/engine.ts";
import { andThen, type Eventually } from "../ports/eventually.ts";
import type { Journal } from "../ports/journal.ts";
import { apiThread, apiStoredSizes, apiTtl } from "./api-records.ts";
import { emptySnapshot, stateSnapshot, type StateProjection } from "./state-snapshot.ts";
import { requireStorableObject } from "./storable-values.ts";
import { stateWritesOf, type SuperstepRequest } from "./state-update-requests.ts";
import {
  countThreads,
  searchThreads,
  type ThreadRecordReader,
  type ThreadSearchFilter,
  type ThreadSearchPage,
  type ThreadSearchQuery,
} from "./thread-search.ts";

export interface NewThread {
  /** A UUID in lower case. */
  readonly thread_id?: string;
  readonly metadata?: JsonObject;
  /** When the id is taken: `raise` (default) throws `thread.exists`, `do_nothing` returns the existing thread. */
  readonly if_exists?: "raise" | "do_nothing";
  /** Writes that make the initial state of the thread, superstep by superstep. `graph_id` in the metadata names the graph. */
  readonly supersteps?: readonly SuperstepRequest[];
  /** How long the thread is kept. Default: the server's configuration. */
  readonly ttl?: ThreadLifetime;
}

export interface ThreadUpdate {
  /** Entries to add to the thread's metadata. They replace entries with the same names. */
  readonly metadata?: JsonObject;
  readonly ttl?: ThreadLifetime;
}

export interface Threads {
  /**
   * Creates a thread, together with its state if supersteps are given. If the state cannot be made, no thread is created. `permits` decides
   * whether `do_nothing` may return the existing thread; if not, `thread.exists` is thrown.
   * @throws ServiceError `thread.exists`, `validation.failed`, `server.draining`, `storage.unavailable`; with supersteps also the engine's
   *   errors
   */
  create(tenant: string, request: NewThread, permits?: Permits): Promise<JsonObject>;
  /** The stored record of a thread, without its state. @throws ServiceError `thread.not_found` */
  record(key: ThreadKey): Eventually<ThreadRecord>;
  /** The thread with its state; `withTtl` adds the thread's time to live. @throws ServiceError `thread.not_found` */
  get(key: ThreadKey, withTtl?: boolean): Promise<JsonObject>;
  search(tenant: string, query: ThreadSearchQuery): Promise<ThreadSearchPage>;
  /** The exact number of matches. */
  count(tenant: string, request: ThreadSearchFilter): Promise<number>;
  /** @throws ServiceError `thread.not_found`, `validation.failed`, `server.draining`, `storage.unavailable` */
  update(key: ThreadKey, update: ThreadUpdate): Promise<JsonObject>;
  /** Cancels the runs of the thread and deletes it. Throws as {@link update} does. */
  remove(key: ThreadKey): Promise<void>;
  /**
   * Deletes all threads whose last run used this assistant, according to the threads' metadata. Threads that `permission` does not allow
   * are left out. Throws as {@link update} does.
   */
  removeOf(tenant: string, assistant: string, permission?: Permission): Promise<void>;
  /**
   * Copies the thread, with its state and history, and returns the new thread. `metadata`: the metadata of the copy; default: the thread's
   * own. Throws as {@link update} does.
   */
  copy(key: ThreadKey, metadata?: JsonObject): Promise<JsonObject>;
  /**
   * Deletes these threads or, depending on `strategy`, all their checkpoints except the latest. Skips threads
   * that do not exist. If only checkpoints are deleted, busy threads are skipped too. Resolves with the
   * number of threads that were changed.
   */
  prune(threads: readonly ThreadKey[], strategy: TtlStrategy): Promise<number>;
  /**
   * The number and bytes of the rows that the thread has stored. `total_bytes` is the sum of its checkpoints, values and pending writes.
   * Its runs, events and record are shown separately.
   * @throws ServiceError `thread.not_found`
   */
  storedSizes(key: ThreadKey): Promise<JsonObject>;
  /** The latest state; if the thread has none yet, an empty state. @throws ServiceError `thread.not_found` */
  state(key: ThreadKey, projection: StateProjection): Promise<JsonObject>;
  /**
   * The latest state as JSON text. The text is cached for clients that poll, if it is short and no task is planned. A large state is
   * returned as an object instead, to be written piece by piece.
   */
  stateText(key: ThreadKey, projection: StateProjection): Eventually<string | JsonObject>;
}

interface Deps {
  readonly system: ThreadSystem;
  readonly journal: Journal;
  readonly catalog: Catalog;
  readonly newId: () => string;
  readonly engine: Engine;
  /** Deletes the crons of a thread that was deleted. */
  readonly forgetCrons: (key: ThreadKey) => Promise<void>;
  /** The default lifetime of threads; absent: they do not expire. */
  readonly threadTtl?: ThreadLifetime | undefined;
}

/**
 * The maximum length of a state text that is cached, in characters. A text is cached as long as the thread's record is in memory, so about
 * as many texts are cached as the journal caches records.
 */
const MAX_CACHED_CHARACTERS = 16 * 1024;

export function createThreads(deps: Deps): Threads {
  const { system, journal, catalog, newId, engine, forgetCrons, threadTtl } = deps;
  /** Cached state texts by thread record: the journal returns a new record object after each change of the thread. */
  const texts = new WeakMap<ThreadRecord, string>();

  async function latest(key: ThreadKey, { checkpoint: id }: ThreadRecord, projection: StateProjection) {
    if (id === null) return emptySnapshot(projection);
    return stateSnapshot({ engine, journal, key, projection }, await referencedCheckpoint(journal, key, id));
  }

  async function valuesOf(
    key: ThreadKey,
    thread: ThreadRecord,
    keys?: readonly string[],
  ): Promise<JsonObject | null> {
    if (thread.checkpoint === null) return null;
    return journal.sharedValues(key, await referencedCheckpoint(journal, key, thread.checkpoint), keys);
  }

  const shown = async (key: ThreadKey, record: ThreadRecord) =>
    apiThread(record, await valuesOf(key, record));

  async function remove(key: ThreadKey): Promise<void> {
    await system.threads.remove(key);
    await forgetCrons(key);
  }

  const reading: ThreadRecordReader = {
    values: (tenant, thread, keys) => valuesOf({ tenant, thread: thread.thread_id }, thread, keys),
    async show(tenant, thread, withValues) {
      if (!withValues) return apiThread(thread, null);
      const key = { tenant, thread: thread.thread_id };
      try {
        return await shown(key, thread);
      } catch {
        // The thread has probably changed since the search found it, so its record is read again.
        return readConsistently(journal, key, (record) => shown(key, record)).catch(ifThere);
      }
    },
  };

  return {
    async create(tenant, request, permits) {
      const thread = request.thread_id ?? newId();
      const key = { tenant, thread };
      const metadata = requireStorableObject(request.metadata, "metadata");
      const { if_exists = "raise", ttl = threadTtl ?? null, supersteps = [] } = request;
      const record = await system.create(key, {
        metadata,
        if_exists,
        ttl,
        supersteps: stateWritesOf(supersteps),
        ...(permits && { permits }),
      });
      return shown(key, record);
    },

    record: (key) => visibleThread(journal, key),

    get: (key, withTtl = false) =>
      readConsistently(journal, key, async (record) => {
        const thread = await shown(key, record);
        return withTtl ? { ...thread, ttl: apiTtl(record) } : thread;
      }),

    search: (tenant, query) => searchThreads(catalog, reading, tenant, query),

    count: (tenant, request) => countThreads(catalog, reading, tenant, request),

    async update(key, { metadata, ttl }) {
      const change = metadata && { metadata: requireStorableObject(metadata, "metadata") };
      await system.threads.update(key, { ...change, ...(ttl && { ttl }) });
      return readConsistently(journal, key, (record) => shown(key, record));
    },

    remove,

    async removeOf(tenant, assistant, permission) {
      const permits = permitsOf(permission);
      const page = {
        metadata: { ...permission?.members, assistant_id: assistant },
        ...(permits && { keep: (thread: ThreadRecord) => permits(thread.metadata) }),
        ...({ limit: 100, offset: 0, sort_by: "created_at", sort_order: "asc" } as const),
      };
      for (;;) {
        // The search no longer finds threads that were deleted, so the next page is always the first one.
        const { threads } = await catalog.searchThreads(tenant, page);
        if (threads.length === 0) return;
        for (const { thread_id: thread } of threads)
          await remove({ tenant, thread, ...(permits && { permits }) }).catch(ifThere);
      }
    },

    async storedSizes(key) {
      await visibleThread(journal, key);
      return apiStoredSizes(key, await journal.storedSizes(key));
    },

    async copy(key, metadata) {
      const to = { tenant: key.tenant, thread: newId() };
      const record = await system.threads.copy(
        key,
        to,
        metadata && requireStorableObject(metadata, "metadata"),
      );
      return shown(to, record);
    },

    async prune(threads, strategy) {
      let count = 0;
      const keys = new Map(threads.map((key) => [key.thread, key]));
      for (const key of keys.values()) {
        const done = strategy === "delete" ? remove(key).then(() => true) : system.threads.prune(key);
        if (await done.catch(ifThere)) count++;
      }
      return count;
    },

    state: (key, projection) => readConsistently(journal, key, (record) => latest(key, record, projection)),

    stateText(key, projection) {
      const plain =
        projection.fields === undefined &&
        projection.subgraphs !== true &&
        projection.listLimit === undefined;
      const read = () =>
        readConsistently(journal, key, async (record) => {
          const state = await latest(key, record, projection);
          if (!isSmallJson(state)) return state;
          const text = JSON.stringify(state);
          if (!plain || text.length > MAX_CACHED_CHARACTERS) return text;
          // If tasks are planned, the text is not cached: the state then also depends on pending writes and subgraphs, which may change
          // while the record stays the same.
          if ((state["next"] as readonly unknown[]).length === 0) texts.set(record, text);
          return text;
        });
      return plain ? andThen(visibleThread(journal, key), (record) => texts.get(record) ?? read()) : read();
    },
  };
}

/** Ignores the error that a thread does not exist. */
function ifThere(cause: unknown): undefined {
  if (cause instanceof ServiceError && cause.code === "thread.not_found") return undefined;
  throw cause;
}

/** Reads the record of a thread that may be shown to the client. @throws ServiceError `thread.not_found`, also for a temporary thread */
export function visibleThread(journal: Journal, key: ThreadKey): Eventually<ThreadRecord> {
  return andThen(journal.thread(key), (record) => {
    if (record !== undefined && record.temporary === null && isPermitted(key, record)) return record;
    throw threadNotFound(key.thread);
  });
}

/** Reads the record of a thread, which may be a temporary thread; undefined if it does not exist or the request may not reach it. */
export function permittedThread(journal: Journal, key: ThreadKey): Eventually<ThreadRecord | undefined> {
  return andThen(journal.thread(key), (record) =>
    record !== undefined && isPermitted(key, record) ? record : undefined,
  );
}

/**
 * Reads a thread and the data to which its record refers. If `read` fails and the thread has changed meanwhile, for example by a rollback,
 * everything is read again. If the thread has not changed, the error of `read` is thrown.
 */
export async function readConsistently<T>(
  journal: Journal,
  key: ThreadKey,
  read: (record: ThreadRecord) => Promise<T>,
): Promise<T> {
  for (;;) {
    const record = await visibleThread(journal, key);
    try {
      return await read(record);
    } catch (thrown) {
      if ((await visibleThread(journal, key)).seq === record.seq) throw thrown;
    }
  }
}

/** A root checkpoint that a record refers to. @throws ServiceError `journal.damaged` when it is missing */
async function referencedCheckpoint(journal: Journal, key: ThreadKey, id: string): Promise<Checkpoint> {
  const checkpoint = await journal.checkpoint(key, "", id);
  if (checkpoint !== undefined) return checkpoint;
  throw new ServiceError("journal.damaged", `Checkpoint ${id} of thread ${key.thread} is missing`);
}
