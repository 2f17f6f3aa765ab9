import type { Checkpoint, NewCheckpoint, TaskWrites } from "../model/checkpoint.ts";
import type { OutboxItem } from "../model/webhook-delivery.ts";
import type { EventChunk } from "../model/run-event.ts";
import type { JsonObject } from "../model/json.ts";
import type { RunRecord, RunStatus } from "../model/run.ts";
import type { DelayedRun, ThreadKey, ThreadRecord } from "../model/thread.ts";
import type { Eventually } from "./eventually.ts";

/** What an append believes to be stored. A writer that is wrong about it has been overtaken, and is refused. */
export interface Fence {
  /** The thread's epoch; 0 for a thread that is to be made. */
  readonly epoch: number;
  /** The thread's last append; 0 for a thread that is to be made. */
  readonly seq: number;
}

/** One atomic change of one thread. Everything in it is stored, or nothing is. */
export interface Append {
  readonly key: ThreadKey;
  readonly fence: Fence;
  /** In a word: `created`, `admitted`, `started`, `stepped`, `settled`, ... For the journal and for people. */
  readonly kind: string;
  /**
   * True: acknowledged. The promise resolves once it would survive a power cut.
   * False: streamed. It resolves once it would survive the end of the process.
   */
  readonly durable: boolean;
  /** The thread as it is afterwards. `seq` MUST be the fence's + 1, `epoch` the fence's or one more. */
  readonly thread: ThreadRecord;
  readonly runs?: readonly RunRecord[] | undefined;
  /** In order of making: each one's parent is stored already, or stands before it here. */
  readonly checkpoints?: readonly NewCheckpoint[] | undefined;
  readonly writes?: readonly TaskWrites[] | undefined;
  readonly events?: EventChunk | undefined;
  /** Runs to be forgotten, with their events and the checkpoints that they made. */
  readonly forget?: readonly string[] | undefined;
  /** The request that it carries out, by the name that its client gave it: sent again, it is found by {@link Journal.once}. */
  readonly once?: Once | undefined;
  /** Webhooks that the ends of runs in it owe: from here on the outbox has them, whatever becomes of run and thread. */
  readonly outbox?: readonly OutboxItem[] | undefined;
}

/** A request that is to be carried out once, however often it comes. */
export interface Once {
  /** Unique within the tenant. */
  readonly name: string;
  /** What the request says: another one under the same name is none that comes again. */
  readonly digest: string;
  readonly run: string;
  /** When it came, epoch milliseconds. */
  readonly at: number;
}

/** A {@link Once} that was carried out, and where. */
export interface Done extends Once {
  readonly thread: string;
}

/** A run that waits for its time. */
export interface Due extends DelayedRun {
  readonly key: ThreadKey;
}

export interface RunsQuery {
  readonly limit: number;
  readonly offset: number;
  /** Only runs that were admitted before this one, by its `order`. */
  readonly before?: number;
  /** No more are read once they have so many bytes, as stored: then there may be more. At least one is, where there is one. */
  readonly bytes?: number;
  /** Stored status; the overlay of `running` is the caller's affair. */
  readonly status?: RunStatus;
  /** Every member must be contained in the run's metadata. */
  readonly metadata?: JsonObject;
}

/** Which runs are meant: those that fit all that is named. */
export type RunsFilter = Pick<RunsQuery, "status" | "metadata">;

export interface HistoryQuery {
  readonly ns: string;
  readonly limit: number;
  /** No more are read once they have so many bytes, as stored: then there may be more. At least one is, where there is one. */
  readonly bytes?: number;
  /** Only checkpoints older than this one. */
  readonly before?: string;
  /** Only checkpoints newer than this one: those that are next to it. */
  readonly after?: string;
}

/** A stored value that is not what was written, or a number missing from a sequence. */
export interface Damage {
  readonly key: ThreadKey;
  readonly what: string;
}

/**
 * The durable, ordered, fenced record of threads, their runs, checkpoints and events. Callers see nouns, never keys.
 *
 * Writes take effect in the order of the calls, across all threads. A read sees every append that has resolved; it may
 * or may not see one in flight. Reads MUST NOT answer from a damaged value: they throw `journal.damaged`.
 */
export interface Journal {
  // --- threads ---
  thread(key: ThreadKey): Eventually<ThreadRecord | undefined>;
  /**
   * Threads with a run in progress or waiting, and temporary ones: all that a boot has to look at. MUST NOT scan the others.
   */
  unsettled(): AsyncIterable<ThreadKey>;

  // --- runs ---
  run(key: ThreadKey, run: string): Eventually<RunRecord | undefined>;
  /** Newest admission first. */
  runs(key: ThreadKey, query: RunsQuery): Promise<readonly RunRecord[]>;
  /** How many there are that fit. With a filter each one is looked at. */
  countRuns(key: ThreadKey, filter?: RunsFilter): Promise<number>;

  /**
   * Runs that have begun, in that order, by the thread's numbers for events: from the last one on that begins at or below
   * `seq`, or from the first. At most `limit`, fewer only where there are no more. Runs begin in the order of their
   * admission, but for those that were delayed. MUST NOT look at each run of a thread to find the place.
   */
  started(key: ThreadKey, seq: number, limit: number): Promise<readonly RunRecord[]>;

  /** Runs of all threads that wait for their time (`ThreadRecord.delayed`): the first `limit`, by time. */
  delayed(limit: number): Promise<readonly Due[]>;
  /** What an append has carried out under this name. */
  once(tenant: string, name: string): Eventually<Done | undefined>;

  // --- checkpoints ---
  checkpoint(key: ThreadKey, ns: string, id: string): Eventually<Checkpoint | undefined>;
  /** Newest first. */
  history(key: ThreadKey, query: HistoryQuery): Promise<readonly Checkpoint[]>;
  /** The state at a checkpoint: all channels, or only `channels`, so that a small key costs a small read. */
  values(key: ThreadKey, checkpoint: Checkpoint, channels?: readonly string[]): Eventually<JsonObject>;
  /** What tasks have left at a checkpoint, in the order of their ids. */
  writes(key: ThreadKey, ns: string, checkpoint: string): Eventually<readonly TaskWrites[]>;

  // --- events ---
  /**
   * Stored chunks of a run in order, from the one that holds event `after + 1` (-1: from the first) on. A short answer is
   * never the end: only an empty one is. At most about `limit` chunks, at least one where there is one.
   */
  events(key: ThreadKey, run: string, after: number, limit: number): Eventually<readonly EventChunk[]>;

  /** The id that follows the run's last stored event; 0 for a run without any. */
  nextEvent(key: ThreadKey, run: string): Eventually<number>;

  // --- writing ---
  /**
   * Who is about to begin something new, a run, waits for this first: undefined while few writes are under way, else a promise that
   * resolves when it is their turn, in the order of the calls. It never rejects, and keeps nobody for good.
   */
  room(): Promise<void> | undefined;
  /**
   * MUST refuse with `journal.fenced` when the thread's epoch is not the fence's, with `journal.conflict` when its seq is
   * not; both are judged at the call, against every append made before, stored or in flight. Rejects with
   * `storage.unavailable` when the write failed: then nothing later of this thread in flight is stored either, and the
   * writer MUST read the thread anew before it writes again. The checkpoints' `channels` are derived by the journal.
   */
  append(append: Append): Promise<void>;
  /**
   * Stores streamed events: outside the thread's sequence, class streamed, fenced by epoch alone. The chunk MUST begin
   * where the run's last one ended, or above it.
   */
  publish(key: ThreadKey, epoch: number, chunk: EventChunk): Promise<void>;
  /** Forgets what is held in memory for a thread that rests. Reading it again costs a read. */
  release(key: ThreadKey): void;
  /** Deletes a thread with all that belongs to it; what it owes to webhooks stays. */
  remove(key: ThreadKey, fence: Fence): Promise<void>;
  /**
   * Deletes all checkpoints but the latest of each namespace, at the root the one that the thread's record names, and the
   * values that only those hold. What is left has no parent. Whatever stops it, each checkpoint that is left is whole. The
   * thread MUST be at rest, and MUST NOT be written to meanwhile.
   */
  prune(key: ThreadKey, fence: Fence): Promise<void>;
  /**
   * Makes thread `to`, of the same tenant, with all checkpoints of `from`, their values and what tasks have left; no runs, no events. `make` is given the
   * thread as it was at that moment, and says how the new one begins. Resolves, once it would survive a power cut, with what
   * was made; until then there is nothing of it.
   * @throws ServiceError `thread.not_found`, `journal.conflict` where there is a thread `to`
   */
  copy(from: ThreadKey, to: ThreadKey, make: (thread: ThreadRecord) => ThreadRecord): Promise<ThreadRecord>;

  // --- care ---
  /**
   * Deletes the events of runs that ended before `before` (epoch milliseconds); of such a run, `events` gives none from
   * then on. It looks at about `most` threads that follow `from` (null: at the first ones) and resolves with where to go
   * on; null once it has seen all. Runs that are read now (`isRead`) keep theirs: a reader must not miss some in silence.
   */
  expireEvents(
    before: number,
    from: ThreadKey | null,
    most: number,
    isRead?: (key: ThreadKey, run: string) => boolean,
  ): Promise<ThreadKey | null>;
  /** Forgets requests that came before `before` (epoch milliseconds), at most `most`; true: there are more. */
  expireOnce(before: number, most: number): Promise<boolean>;
  /** Reads everything, of one thread or of all, and tells what is damaged or missing. */
  verify(key?: ThreadKey): AsyncIterable<Damage>;
}
