import type { ServiceError } from "../model/errors.ts";
import type { Checkpoint, NewCheckpoint, TaskWrites } from "../model/checkpoint.ts";
import type { OutboxItem } from "../model/webhook-delivery.ts";
import type { EventChunk } from "../model/run-event.ts";
import type { JsonObject } from "../model/json.ts";
import type { RunRecord, RunStatus } from "../model/run.ts";
import type { DelayedRun, ThreadKey, ThreadRecord } from "../model/thread.ts";
import type { StoredSizes } from "../model/stored-sizes.ts";
import type { Eventually } from "./eventually.ts";
import type { OnProgress } from "./progress.ts";

/** The stored version that a writer expects. An append with another one is refused: another writer has replaced this one. */
export interface Fence {
  /** The thread's epoch; 0 for a new thread. */
  readonly epoch: number;
  /** The number of the thread's last append; 0 for a new thread. */
  readonly seq: number;
}

/** One atomic change of a thread: everything in it is stored, or nothing is. */
export interface Append {
  readonly key: ThreadKey;
  readonly fence: Fence;
  /**
   * What the change is, in a word: `created`, `admitted`, `started`, `stepped`, `settled`, ... For the journal and for people.
   */
  readonly kind: string;
  /**
   * True (acknowledged): the promise resolves when the change would survive a power cut.
   * False (streamed): it resolves when the change would survive the end of the process.
   */
  readonly durable: boolean;
  /** The thread after the change. `seq` MUST be the fence's + 1, `epoch` the fence's or one more. */
  readonly thread: ThreadRecord;
  readonly runs?: readonly RunRecord[] | undefined;
  /** New checkpoints, oldest first: the parent of each is stored already, or comes before it here. */
  readonly checkpoints?: readonly NewCheckpoint[] | undefined;
  readonly writes?: readonly TaskWrites[] | undefined;
  readonly events?: EventChunk | undefined;
  /** Runs to delete, with their events and the checkpoints that they made. */
  readonly forget?: readonly string[] | undefined;
  /**
   * The request that it carries out, with the idempotency key of its client. {@link Journal.once} finds it when it is sent
   * again.
   */
  readonly once?: IdempotentRequest | undefined;
  /** Webhook deliveries for the runs that end in it. They stay in the outbox even if the run or the thread is deleted. */
  readonly outbox?: readonly OutboxItem[] | undefined;
}

/** A request that is carried out once, however often it is sent (an idempotency record). */
export interface IdempotentRequest {
  /** The idempotency key, unique within the tenant. */
  readonly name: string;
  /** A digest of the request. A request with the same name and another digest is not a repetition. */
  readonly digest: string;
  readonly run: string;
  /** Epoch milliseconds at which the request arrived. */
  readonly at: number;
}

/** A {@link IdempotentRequest} that was carried out, with its thread. */
export interface CompletedRequest extends IdempotentRequest {
  readonly thread: string;
}

export interface KeyedDelayedRun extends DelayedRun {
  readonly key: ThreadKey;
}

export interface RunsQuery {
  readonly limit: number;
  readonly offset: number;
  /** Only runs that were admitted before the run with this `order`. */
  readonly before?: number;
  /** Bytes, as stored: reading stops after the run that exceeds them, although more runs may follow. */
  readonly bytes?: number;
  /** The stored status. The caller overlays `running`. */
  readonly status?: RunStatus;
  /** Every member must be contained in the run's metadata. */
  readonly metadata?: JsonObject;
}

/** A filter of runs. A run must match every given member. */
export type RunsFilter = Pick<RunsQuery, "status" | "metadata">;

export interface HistoryQuery {
  readonly ns: string;
  readonly limit: number;
  /**
   * Bytes, as stored, after which no more are read: then there may be more. At least one is read, if there is one. With this, a large one is
   * the first of a page, so that few are in memory together.
   */
  readonly bytes?: number;
  /** Only checkpoints older than this one. */
  readonly before?: string;
  /** Only checkpoints newer than this one, and of these the ones next to it. */
  readonly after?: string;
}

/** A damage of the storage: a value that differs from what was written, or a gap in a sequence. */
export interface Damage {
  readonly key: ThreadKey;
  readonly what: string;
}

/** At least this many chunks of a run are read in one turn of the event loop, however long that takes. */
export const MIN_CHUNKS = 16;

/**
 * The durable, ordered, fenced record of threads, their runs, checkpoints and events. Callers see records, never storage keys.
 *
 * Writes to a thread take effect in the order of the calls; where small reads are answered in the same turn, so do those to
 * different threads. A read sees every append that has resolved; it may or may not see one in flight. Reads MUST NOT answer
 * from a damaged value: they throw `journal.damaged`.
 */
export interface Journal {
  // --- threads ---
  thread(key: ThreadKey): Eventually<ThreadRecord | undefined>;
  /**
   * Threads with a run in progress or queued, and temporary threads: all that a start has to read. MUST NOT scan the others.
   */
  unsettled(): AsyncIterable<ThreadKey>;

  // --- runs ---
  run(key: ThreadKey, run: string): Eventually<RunRecord | undefined>;
  /**
   * Like {@link run}, for readers of events and states: those that read a run with a large input at the same time share one copy of it,
   * which MUST NOT be changed. So do the records of {@link started}.
   */
  sharedRun(key: ThreadKey, run: string): Eventually<RunRecord | undefined>;
  /** Newest admission first. */
  runs(key: ThreadKey, query: RunsQuery): Promise<readonly RunRecord[]>;
  /** The number of runs that match. With a filter, each run is read. */
  countRuns(key: ThreadKey, filter?: RunsFilter): Promise<number>;

  /**
   * Runs that have started, in order of their first event in the thread: from the last run that starts at or below event
   * number `seq`, or from the first run. Returns `limit` runs, fewer when there are no more, or when these are large. Runs start in the order of
   * their admission, except delayed ones. MUST NOT read each run of the thread to find the first one.
   */
  started(key: ThreadKey, seq: number, limit: number): Promise<readonly RunRecord[]>;

  /** Delayed runs of all threads (`ThreadRecord.delayed`): the first `limit`, by due time. */
  delayed(limit: number): Promise<readonly KeyedDelayedRun[]>;
  /** The request that an append has carried out under this idempotency key. */
  once(tenant: string, name: string): Eventually<CompletedRequest | undefined>;

  // --- checkpoints ---
  checkpoint(key: ThreadKey, ns: string, id: string): Eventually<Checkpoint | undefined>;
  /** Newest first. */
  history(key: ThreadKey, query: HistoryQuery): Promise<readonly Checkpoint[]>;
  /** The state at a checkpoint. */
  values(key: ThreadKey, checkpoint: Checkpoint): Eventually<JsonObject>;
  /**
   * The same for readers of states: those that read a large value at the same time share one copy of it, which MUST NOT be changed. With
   * `channels`, only these, so that reading a small channel is cheap.
   */
  sharedValues(key: ThreadKey, checkpoint: Checkpoint, channels?: readonly string[]): Eventually<JsonObject>;
  /** Pending writes of tasks at a checkpoint, in the order of task ids. */
  writes(key: ThreadKey, ns: string, checkpoint: string): Eventually<readonly TaskWrites[]>;

  /**
   * The rows and bytes that the thread has stored. It reads all of the thread, so it MUST yield to other work. Nothing is counted for a thread that
   * does not exist.
   */
  storage(key: ThreadKey): Promise<StoredSizes>;

  // --- events ---
  /**
   * Stored chunks of a run in order, from the one that contains event `after + 1` (-1: from the first). Returns about `limit`
   * chunks at most, and at least one if there is one; {@link MIN_CHUNKS}, if there are so many, are read before anything
   * can delete them. Only an empty result means the end, never a short one.
   */
  events(key: ThreadKey, run: string, after: number, limit: number): Eventually<readonly EventChunk[]>;

  /** The id that follows the run's last stored event; 0 for a run without any. */
  nextEvent(key: ThreadKey, run: string): Eventually<number>;

  // --- writing ---
  /**
   * Waits for write capacity. Callers MUST wait for it before they begin something new, such as a run. Undefined while few
   * writes are in flight; else a promise that resolves in the order of the calls. It never rejects, and always resolves.
   */
  waitForCapacity(): Promise<void> | undefined;
  /**
   * Undefined while writes are accepted. After a failed write, a promise that resolves when they are accepted again, or the storage is closed; it
   * never rejects. Callers that repeat a write SHOULD wait for it before they do.
   */
  whenWritable(): Promise<void> | undefined;
  /** The error of every write at present; undefined while writes are accepted. */
  readonly refusal: ServiceError | undefined;
  /**
   * Stores a change. MUST reject with `journal.fenced` when the thread's epoch is not the fence's, and with
   * `journal.conflict` when its seq is not; both are checked at the call, against every earlier append, stored or in flight.
   * Rejects with `storage.unavailable` when the write failed: then no later append of this thread in flight is stored
   * either, and the writer MUST read the thread again before it writes. The journal derives the checkpoints' `channels`.
   */
  append(append: Append): Promise<void>;
  /**
   * Stores streamed events: outside the thread's sequence, not durable (as an append that is not `durable`), and fenced only
   * by epoch. The chunk MUST begin where the run's last one ended, or above it.
   */
  publish(key: ThreadKey, epoch: number, chunk: EventChunk): Promise<void>;
  /** Frees the memory of a thread without work. Using it again costs a read. */
  release(key: ThreadKey): void;
  /** Deletes a thread with everything that belongs to it. Its pending webhook deliveries stay. */
  remove(key: ThreadKey, fence: Fence): Promise<void>;
  /**
   * Deletes all checkpoints except the latest of each namespace (in the root namespace the one that the thread's record
   * names), and the values that only the deleted ones use. The remaining checkpoints have no parent. If it is interrupted,
   * each remaining checkpoint is still complete. The thread MUST have no work, and MUST NOT be written to meanwhile.
   */
  prune(key: ThreadKey, fence: Fence): Promise<void>;
  /**
   * Creates thread `to`, of the same tenant, with all checkpoints of `from`, their values and pending writes, but no runs and
   * no events. `make` gets the record of `from` and returns that of the new thread. Resolves with the new record when it
   * would survive a power cut; the copy is not visible before.
   * @throws ServiceError `thread.not_found`, or `journal.conflict` when thread `to` exists
   */
  copy(from: ThreadKey, to: ThreadKey, make: (thread: ThreadRecord) => ThreadRecord): Promise<ThreadRecord>;

  // --- maintenance ---
  /**
   * Deletes the events of runs that ended before `before` (epoch milliseconds); `events` returns none for such a run from
   * then on. It checks about `most` threads after `from` (null: the first ones), and resolves with the thread to go on
   * after; null when it has checked all. Runs that have a reader (`isRead`) keep their events, so that no reader misses any.
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
  /** Reads everything of one thread or of all, and yields what is damaged or missing. */
  verify(key?: ThreadKey, onProgress?: OnProgress): AsyncIterable<Damage>;
}
