import type { PlainError } from "./errors.ts";
import type { Interrupts } from "./interrupt.ts";
import type { JsonObject } from "./json.ts";

/** Whose thread, and which. The tenant is part of every key, never a filter; `_` where there is but one. */
export interface ThreadKey {
  readonly tenant: string;
  readonly thread: string;
}

export const DEFAULT_TENANT = "_";

/**
 * A thread's name among those of all tenants, in memory. Mostly it is the id alone: it is looked up a dozen times a run, and a
 * text that is put together has to be hashed each time.
 */
export function threadName({ tenant, thread }: ThreadKey): string {
  return tenant === DEFAULT_TENANT ? thread : `${tenant}/${thread}`;
}

/** How a thread rests: `idle` has run nothing yet, or its last run was cancelled; the others say how it ended. */
export type RestState = "idle" | "success" | "interrupted" | "error";

/** What the wire calls a thread's state. */
export type ThreadStatus = "idle" | "busy" | "interrupted" | "error";

/**
 * What is stored of a thread: all that its actor needs to wake. Times are epoch milliseconds. The status is not in it:
 * see {@link threadStatus}.
 */
export interface ThreadRecord {
  readonly thread_id: string;
  readonly created_at: number;
  readonly updated_at: number;
  readonly state_updated_at: number;
  /** When it was last changed without having work afterwards: its place by time in the index, also while it works. */
  readonly rested_at: number;
  readonly metadata: JsonObject;
  readonly config: JsonObject;
  /** How the last run ended; what the thread rests in when it has no work. */
  readonly rest: RestState;
  readonly error: PlainError | null;
  /** The fence: +1 in the append that starts an attempt of a run. A write under an older one is refused. */
  readonly epoch: number;
  /** Number of the last append to this thread's journal; contiguous from 1. */
  readonly seq: number;
  /** The run in progress, or null. */
  readonly active: string | null;
  /** Runs that wait, in the order in which they will start. */
  readonly queue: readonly string[];
  /** Id of the latest root checkpoint, or null before the first. */
  readonly checkpoint: string | null;
  readonly interrupts: Interrupts;
  /** The thread's next event number: what the next run to start takes as its `seq_base`. */
  readonly next_event: number;
  /** The order of admission that the next run gets. */
  readonly next_run: number;
  /** Set on the thread of a run that was given none: nobody is shown it, and it is deleted with the run's end. */
  readonly temporary: Temporary | null;
  /** Runs that wait for their time, in no order; null: none. They are no work: the thread rests, and takes others. */
  readonly delayed: readonly DelayedRun[] | null;
  /** When it goes; null: it stays. */
  readonly ttl: ThreadTtl | null;
}

export interface DelayedRun {
  readonly run: string;
  /** When it is to start, epoch milliseconds. */
  readonly due: number;
}

export const ttlStrategies = ["delete", "keep_latest"] as const;

/** `delete`: the thread with all that belongs to it. `keep_latest`: of its checkpoints all but the latest. */
export type TtlStrategy = (typeof ttlStrategies)[number];

/** Longest that a thread may be kept and yet go: a hundred years. */
export const MOST_MINUTES = 100 * 366 * 24 * 60;

/** How long a thread is kept after it was last changed. */
export interface ThreadLifetime {
  readonly strategy: TtlStrategy;
  readonly minutes: number;
}

export interface ThreadTtl extends ThreadLifetime {
  /** When to look at it, in epoch milliseconds. A thread that was changed since is not due then, and gets a later one. */
  readonly due: number;
}

/** When a thread that was last changed `at` is due. */
export function ttlFrom({ strategy, minutes }: ThreadLifetime, at: number): ThreadTtl {
  return { strategy, minutes, due: Math.ceil(at + minutes * 60_000) };
}

/** What a thread is made with. */
export interface ThreadStart {
  readonly metadata?: JsonObject;
  readonly ttl?: ThreadLifetime | null;
  /** It is made for one run: hidden, and deleted when the run has ended and its readers have read that. */
  readonly temporary?: Temporary | null;
}

/**
 * How a run that was given no thread stands to its client. `background`: it needs none. `bound`: it ends when its client
 * leaves. `free`: its client may leave and come back.
 */
export type Temporary = "background" | "bound" | "free";

/** Does anything run or wait to run? */
export function hasWork({ active, queue }: ThreadRecord): boolean {
  return active !== null || queue.length > 0;
}

/** The status on the wire, read from the record: busy while anything runs or waits to run. */
export function threadStatus(thread: ThreadRecord): ThreadStatus {
  return hasWork(thread) ? "busy" : restStatus(thread);
}

/** What the wire calls it at rest. */
export function restStatus({ rest }: Pick<ThreadRecord, "rest">): Exclude<ThreadStatus, "busy"> {
  return rest === "success" ? "idle" : rest;
}

/** A thread that has just been made: nothing stored yet (`seq` 0), no run. */
export function newThread(
  id: string,
  now: number,
  { metadata = {}, temporary = null, ttl = null }: ThreadStart = {},
): ThreadRecord {
  return {
    thread_id: id,
    created_at: now,
    updated_at: now,
    state_updated_at: now,
    rested_at: now,
    metadata,
    config: {},
    rest: "idle",
    error: null,
    epoch: 0,
    seq: 0,
    active: null,
    queue: [],
    checkpoint: null,
    interrupts: {},
    next_event: 1,
    next_run: 1,
    temporary,
    delayed: null,
    ttl: ttl === null ? null : ttlFrom(ttl, now),
  };
}

/**
 * The thread with these members in place of its own. Written out, in the order of {@link newThread}: a copy by spread has a
 * hidden class of its own for each place that makes one, and whatever reads a record meets them all.
 */
export function changeThread(thread: ThreadRecord, change: Partial<ThreadRecord>): ThreadRecord {
  return {
    thread_id: change.thread_id === undefined ? thread.thread_id : change.thread_id,
    created_at: change.created_at === undefined ? thread.created_at : change.created_at,
    updated_at: change.updated_at === undefined ? thread.updated_at : change.updated_at,
    state_updated_at:
      change.state_updated_at === undefined ? thread.state_updated_at : change.state_updated_at,
    rested_at: change.rested_at === undefined ? thread.rested_at : change.rested_at,
    metadata: change.metadata === undefined ? thread.metadata : change.metadata,
    config: change.config === undefined ? thread.config : change.config,
    rest: change.rest === undefined ? thread.rest : change.rest,
    error: change.error === undefined ? thread.error : change.error,
    epoch: change.epoch === undefined ? thread.epoch : change.epoch,
    seq: change.seq === undefined ? thread.seq : change.seq,
    active: change.active === undefined ? thread.active : change.active,
    queue: change.queue === undefined ? thread.queue : change.queue,
    checkpoint: change.checkpoint === undefined ? thread.checkpoint : change.checkpoint,
    interrupts: change.interrupts === undefined ? thread.interrupts : change.interrupts,
    next_event: change.next_event === undefined ? thread.next_event : change.next_event,
    next_run: change.next_run === undefined ? thread.next_run : change.next_run,
    temporary: change.temporary === undefined ? thread.temporary : change.temporary,
    delayed: change.delayed === undefined ? thread.delayed : change.delayed,
    ttl: change.ttl === undefined ? thread.ttl : change.ttl,
  };
}

/** Does the thread list the run as one that has not ended: in progress, queued, or delayed? */
export function listsRun({ active, queue, delayed }: ThreadRecord, run: string): boolean {
  return active === run || queue.includes(run) || (delayed?.some((one) => one.run === run) ?? false);
}
