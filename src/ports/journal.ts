import type { ServiceError } from "../model/errors.ts";
import type { AddedStepResults, Checkpoint, NewCheckpoint, PendingTaskWrites } from "../model/checkpoint.ts";
import type { NewDelivery } from "../model/webhook-delivery.ts";
import type { EventChunk } from "../model/run-event.ts";
import type { JsonObject } from "../model/json.ts";
import type { RunRecord, RunStatus } from "../model/run.ts";
import type { DelayedRun, ThreadKey, ThreadRecord } from "../model/thread.ts";
import type { Timer } from "../model/machine-timer.ts";
import type { StoredSizes } from "../model/stored-sizes.ts";
import type { Eventually } from "./eventually.ts";
import type { OnProgress } from "./work-progress.ts";

/**
 * The version of a thread that a writer expects to be stored. If another version is stored, another writer has changed the thread
 * meanwhile, and the append is refused.
 */
export interface Fence {
  /** The thread's epoch, a number that each attempt of a run raises; 0 for a new thread. */
  readonly epoch: number;
  /** The number of the thread's last append; 0 for a new thread. */
  readonly seq: number;
}

/** One atomic change of a thread: everything in it is stored, or nothing is. */
export interface Append {
  readonly key: ThreadKey;
  readonly fence: Fence;
  /**
   * The kind of change in one word: `created`, `admitted`, `started`, `stepped`, `settled`, ... It is stored for people who read the journal.
   */
  readonly kind: string;
  /**
   * True (acknowledged): the promise resolves when the change would survive a power cut.
   * False (streamed): it resolves when the change would survive the end of the process.
   */
  readonly durable: boolean;
  /** The thread after the change. Its `seq` MUST be the fence's `seq` + 1; its `epoch` MUST be the fence's `epoch`, or one more. */
  readonly thread: ThreadRecord;
  readonly runs?: readonly RunRecord[] | undefined;
  /** New checkpoints, oldest first: the parent of each is stored already, or comes before it here. */
  readonly checkpoints?: readonly NewCheckpoint[] | undefined;
  /**
   * The complete pending writes of some tasks. They replace all earlier pending writes of these tasks, including the
   * step results that {@link Append.steps} added.
   */
  readonly writes?: readonly PendingTaskWrites[] | undefined;
  /**
   * Results of `ctx.step` calls to add to pending writes that an earlier append has stored. So a new result is stored
   * without writing the task's earlier results again.
   */
  readonly steps?: readonly AddedStepResults[] | undefined;
  readonly events?: EventChunk | undefined;
  /** Runs to delete, with their events and the checkpoints that they made. */
  readonly forget?: readonly string[] | undefined;
  /**
   * The request that this append carries out, with the client's idempotency key. When the client repeats the request, {@link Journal.once}
   * finds it.
   */
  readonly once?: IdempotentRequest | undefined;
  /** Webhook deliveries for the runs that this append ends. They stay in the outbox even if the run or the thread is deleted. */
  readonly outbox?: readonly NewDelivery[] | undefined;
}

/** A request that is carried out once, even if it is sent several times (an idempotency record). */
export interface IdempotentRequest {
  /** The name of the request's idempotency key: a hash of the key, unique within the tenant. */
  readonly name: string;
  /** A digest of the request. A request with the same name and another digest is not a repetition. */
  readonly digest: string;
  readonly run: string;
  /** Epoch milliseconds at which the request arrived. */
  readonly at: number;
}

/** An {@link IdempotentRequest} that was carried out, with its thread. */
export interface CompletedRequest extends IdempotentRequest {
  readonly thread: string;
}

export interface DelayedRunOfThread extends DelayedRun {
  readonly key: ThreadKey;
}

export interface TimerOfThread extends Timer {
  readonly key: ThreadKey;
}

export interface RunsQuery {
  readonly limit: number;
  readonly offset: number;
  /** Only runs that were admitted before the run with this number (`RunRecord.order`). */
  readonly before?: number;
  /** A limit in stored bytes: reading stops after the run that exceeds it, although more runs may follow. */
  readonly bytes?: number;
  /** The stored status. `running` matches nothing, because it is never stored: the caller knows which runs are in progress. */
  readonly status?: RunStatus;
  /** The run's metadata must contain every member of this object. */
  readonly metadata?: JsonObject;
}

/** A filter of runs. A run must match every given member. */
export type RunsFilter = Pick<RunsQuery, "status" | "metadata">;

export interface HistoryQuery {
  readonly ns: string;
  readonly limit: number;
  /**
   * A limit in stored bytes: the read ends after the checkpoint that reaches the limit, and also before a large checkpoint, so that few
   * large checkpoints are in memory together. At least one checkpoint is read, if there is one.
   */
  readonly bytes?: number;
  /** Only checkpoints older than the checkpoint with this id. */
  readonly before?: string;
  /** Only checkpoints newer than the checkpoint with this id, beginning with the oldest of them. */
  readonly after?: string;
}

/** Damage to the storage: a value that differs from what was written, or a gap in a sequence. */
export interface Damage {
  readonly key: ThreadKey;
  readonly what: string;
}

/**
 * The number of event chunks of a run that {@link Journal.events} always reads in one turn of the event loop, however
 * long that takes.
 */
export const MIN_CHUNKS_PER_TURN = 16;

/**
 * The durable, ordered log of threads, their runs, checkpoints and events; a fence rejects outdated writers. Callers see records, never
 * storage keys.
 *
 * Writes to a thread take effect in the order of the calls. Writes to different threads do too, if the storage answers small reads in the
 * same turn of the event loop. A read sees every append that has resolved; it may or may not see one in flight. Reads MUST NOT answer from
 * a damaged value: they throw `journal.damaged`.
 */
export interface Journal {
  // --- threads ---
  thread(key: ThreadKey): Eventually<ThreadRecord | undefined>;
  /**
   * Threads with a run in progress or queued, and temporary threads: the only threads that the server has to read when
   * it starts. MUST NOT scan other threads.
   */
  unsettled(): AsyncIterable<ThreadKey>;

  // --- runs ---
  run(key: ThreadKey, run: string): Eventually<RunRecord | undefined>;
  /**
   * Like {@link run}, for readers of events and states: concurrent readers of a run with a large input share one copy of the record, which MUST
   * NOT be changed. The records of {@link started} are shared too.
   */
  sharedRun(key: ThreadKey, run: string): Eventually<RunRecord | undefined>;
  /** The runs that match; the run that was admitted last comes first. */
  runs(key: ThreadKey, query: RunsQuery): Promise<readonly RunRecord[]>;
  /** The number of runs that match. With a filter, each run is read. */
  countRuns(key: ThreadKey, filter?: RunsFilter): Promise<number>;

  /**
   * Runs that have started, ordered by the number of their first event in the thread. Begins with the last run whose first event is at or
   * below `seq`, or else with the first run. Returns `limit` runs, or fewer when there are no more runs, or when the runs are large.
   *
   * MUST NOT read each run of the thread to find where to begin. Runs start in the order of their admission, except delayed runs.
   */
  started(key: ThreadKey, seq: number, limit: number): Promise<readonly RunRecord[]>;

  /** Delayed runs of all threads (`ThreadRecord.delayed`): the first `limit`, by due time. */
  delayedRuns(limit: number): Promise<readonly DelayedRunOfThread[]>;
  /** Threads of all tenants with their next timers (`nextTimer`): the first `limit`, by due time. */
  timers(limit: number): Promise<readonly TimerOfThread[]>;
  /** The request that an append has carried out with the idempotency key that has this name; undefined if there is none. */
  once(tenant: string, name: string): Eventually<CompletedRequest | undefined>;

  // --- checkpoints ---
  checkpoint(key: ThreadKey, ns: string, id: string): Eventually<Checkpoint | undefined>;
  /** The checkpoints that match, newest first. */
  history(key: ThreadKey, query: HistoryQuery): Promise<readonly Checkpoint[]>;
  /** The state at a checkpoint. */
  values(key: ThreadKey, checkpoint: Checkpoint): Eventually<JsonObject>;
  /**
   * Like {@link values}, for readers of states: concurrent readers of a large state share one copy of it, which MUST NOT be changed. With
   * `channels`, reads only these channels, so that reading a small channel is cheap.
   */
  sharedValues(key: ThreadKey, checkpoint: Checkpoint, channels?: readonly string[]): Eventually<JsonObject>;
  /** Pending writes of tasks at a checkpoint, in the order of task ids. */
  writes(key: ThreadKey, ns: string, checkpoint: string): Eventually<readonly PendingTaskWrites[]>;

  /**
   * The rows and bytes that are stored for the thread. Counting them reads the whole thread, so it MUST yield to other work. All counts are 0
   * if the thread does not exist.
   */
  storedSizes(key: ThreadKey): Promise<StoredSizes>;

  // --- events ---
  /**
   * Stored chunks of a run in order, from the chunk that contains event `after + 1`; `after` -1: from the first chunk. Returns about
   * `limit` chunks at most. Only an empty result means that there are no more chunks.
   *
   * The first {@link MIN_CHUNKS_PER_TURN} chunks are read in one turn of the event loop, so that nothing can delete them meanwhile.
   */
  events(key: ThreadKey, run: string, after: number, limit: number): Eventually<readonly EventChunk[]>;

  /** One more than the id of the run's last stored event; 0 if the run has no events. */
  nextEvent(key: ThreadKey, run: string): Eventually<number>;

  // --- writing ---
  /**
   * Waits for write capacity. Callers MUST call it before they begin something new, such as a run. Returns undefined while few writes are
   * in flight, else a promise. The promises resolve in the order of the calls and never reject.
   */
  waitForCapacity(): Promise<void> | undefined;
  /**
   * Returns undefined while writes are accepted. After a failed write, returns a promise that resolves when writes are accepted again or
   * the storage is closed; it never rejects. Callers SHOULD wait for this promise before they repeat a write.
   */
  whenWritable(): Promise<void> | undefined;
  /** The error with which every write fails at present; undefined while writes are accepted. */
  readonly refusal: ServiceError | undefined;
  /**
   * Stores a change. The journal itself sets the checkpoints' `channels`.
   * - MUST reject with `journal.fenced` when the thread's epoch is not the fence's, and with `journal.conflict` when its `seq` is not the
   *   fence's. Both are checked at the call, against every earlier append, stored or in flight.
   * - Rejects with `storage.unavailable` when the write failed. Then no later append of this thread that is in flight is stored either, and
   *   the writer MUST read the thread again before it writes.
   */
  append(append: Append): Promise<void>;
  /**
   * Stores streamed events, not durably, like an append with `durable: false`. Rejects with `journal.fenced` when the thread's epoch is not
   * `epoch`. Neither checks nor changes the thread's `seq`. The chunk MUST begin at the event id where the run's last chunk ended, or at a
   * higher id.
   */
  publish(key: ThreadKey, epoch: number, chunk: EventChunk): Promise<void>;
  /**
   * Frees the memory that is used for a thread without work. The next use of the thread then has to read its record.
   */
  release(key: ThreadKey): void;
  /** Deletes a thread with everything that belongs to it. Its pending webhook deliveries stay. */
  remove(key: ThreadKey, fence: Fence): Promise<void>;
  /**
   * Deletes all checkpoints except the latest of each namespace (in the root namespace, the checkpoint that the thread's record names), and
   * the values that only deleted checkpoints use. The remaining checkpoints have no parent. If pruning is interrupted, each remaining
   * checkpoint is still complete. The thread MUST have no work, and MUST NOT be written to meanwhile.
   */
  prune(key: ThreadKey, fence: Fence): Promise<void>;
  /**
   * Creates thread `to`, of the same tenant, with all checkpoints of `from`, their values and pending writes, but no runs and no events.
   * `make` gets the record of `from` and returns the record of the new thread. Resolves with this record when the copy would survive a
   * power cut; before that, the copy is not visible.
   * @throws ServiceError `thread.not_found`, or `journal.conflict` when thread `to` exists
   */
  copy(from: ThreadKey, to: ThreadKey, make: (thread: ThreadRecord) => ThreadRecord): Promise<ThreadRecord>;

  // --- maintenance ---
  /**
   * Deletes the events of runs that ended before `before` (epoch milliseconds); from then on, `events` returns none for such a run. Checks
   * about `most` threads after `from` (null: from the first). Resolves with the thread to continue after, or null when all were checked.
   * Runs that have a reader (`isRead`) keep their events, so that no reader misses any.
   */
  expireEvents(
    before: number,
    from: ThreadKey | null,
    most: number,
    isRead?: (key: ThreadKey, run: string) => boolean,
  ): Promise<ThreadKey | null>;
  /**
   * Deletes idempotency records from before `before` (epoch milliseconds), at most `most`. Resolves with true if there are
   * more.
   */
  expireOnce(before: number, most: number): Promise<boolean>;
  /** Reads all stored data of one thread, or of all threads, and yields what is damaged or missing. */
  verify(key?: ThreadKey, onProgress?: OnProgress): AsyncIterable<Damage>;
}
