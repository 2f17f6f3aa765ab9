import type { InterruptsByTask } from "./interrupt.ts";
import { type PlainError, threadNotFound } from "./errors.ts";
import type { JsonObject } from "./json.ts";
import type { Permits } from "./permitted-resources.ts";
import type { ThreadTimer } from "./machine-timer.ts";

/**
 * The key of a thread. The tenant is a part of the key, so that no access to a thread can forget the tenant. If there is only one tenant,
 * its name is `_`.
 */
export interface ThreadKey {
  readonly tenant: string;
  readonly thread: string;
  /**
   * Returns whether the user whose request names the thread may reach it, given the thread's metadata; absent: the thread may be reached. A
   * thread that is not permitted counts as missing.
   * MUST be called in the same turn of the event loop in which the thread's record is used: while a request waits, the thread may be
   * deleted, and another thread created under the same id.
   */
  readonly permits?: Permits;
}

/** True when the request with this key may reach the thread. */
export function isPermitted({ permits }: ThreadKey, { metadata }: ThreadRecord): boolean {
  return permits === undefined || permits(metadata);
}

/**
 * Refuses a thread that the request with this key may not reach, as if there were no such thread. @throws ServiceError
 * `thread.not_found`
 */
export function assertPermitted(key: ThreadKey, thread: ThreadRecord): void {
  if (!isPermitted(key, thread)) throw threadNotFound(key.thread);
}

/** The key without the request's permission check: for work that continues after the request. */
export function keyWithoutPermission(key: ThreadKey): ThreadKey {
  return key.permits === undefined ? key : { tenant: key.tenant, thread: key.thread };
}

export const DEFAULT_TENANT = "_";

/**
 * The key of a thread in maps in memory, unique among all tenants. For the default tenant it is the thread's id itself, because
 * a run makes a dozen lookups, and a concatenated string would have to be hashed for each.
 */
export function threadMapKey({ tenant, thread }: ThreadKey): string {
  return tenant === DEFAULT_TENANT ? thread : `${tenant}/${thread}`;
}

/**
 * The state of a thread without work:
 * - `idle`: nothing has run, the last run was cancelled, or the last update of the state planned no tasks
 * - `success`: the last run has succeeded
 * - `interrupted`: interrupts wait for answers, the last run is paused at a breakpoint, or the last update of the state planned tasks
 * - `error`: the last run failed
 */
export type SettledState = "idle" | "success" | "interrupted" | "error";

export type ThreadStatus = "idle" | "busy" | "interrupted" | "error";

/**
 * The stored record of a thread: everything that its actor needs to start. Times are epoch milliseconds. The status is not
 * stored; see {@link threadStatusOf}.
 */
export interface ThreadRecord {
  readonly thread_id: string;
  readonly created_at: number;
  readonly updated_at: number;
  readonly state_updated_at: number;
  /**
   * Epoch milliseconds of the last change that left the thread without work. Searches sorted by last change use it. It
   * does not change while the thread is busy.
   */
  readonly rested_at: number;
  readonly metadata: JsonObject;
  readonly config: JsonObject;
  /** The state of the thread while it has no work. */
  readonly rest: SettledState;
  readonly error: PlainError | null;
  /**
   * The fence against outdated writers: a write with an older epoch is refused. Each append that starts an attempt of a
   * run adds 1.
   */
  readonly epoch: number;
  /** Number of the last append to this thread's journal; consecutive from 1. */
  readonly seq: number;
  /** The id of the run in progress; null if none is in progress. */
  readonly active: string | null;
  /** The ids of the queued runs, in the order in which the runs will start. */
  readonly queue: readonly string[];
  /** The id of the root graph's current checkpoint; null before the first checkpoint. */
  readonly checkpoint: string | null;
  readonly interrupts: InterruptsByTask;
  /** The thread's next event number: the `seq_base` of the next run that starts. */
  readonly next_event: number;
  /** The `order` of the next run that is admitted. */
  readonly next_run: number;
  /**
   * Set if the thread was made for a stateless run. Such a thread is hidden, and is deleted after the run has ended.
   */
  readonly temporary: TemporaryKind | null;
  /**
   * Delayed runs that are not due, in any order; null: none. They do not count as work: the thread is idle and accepts other runs.
   */
  readonly delayed: readonly DelayedRun[] | null;
  /** When the thread is deleted or pruned; null: never. */
  readonly ttl: ThreadTtl | null;
  /**
   * The approximate size in memory, in bytes, of the thread's largest state, including the states of its subgraphs. If
   * no state is large, it is the size of the latest state. Null if the size is unknown, because an older version of
   * Heddle wrote the record.
   */
  readonly state_bytes: number | null;
  /** The timers of the machine in the thread's latest checkpoint, in the order in which they were set; null: none. */
  readonly timers: readonly ThreadTimer[] | null;
}

export interface DelayedRun {
  readonly run: string;
  /** Epoch milliseconds at which the run is due to start. */
  readonly due: number;
}

export const ttlStrategies = ["delete", "keep_latest"] as const;

/**
 * What is deleted when a thread expires. `delete`: the thread with all its data. `keep_latest`: all checkpoints except
 * the latest of each namespace.
 */
export type TtlStrategy = (typeof ttlStrategies)[number];

/** The longest time to live of a thread in minutes: a hundred years. */
export const MAX_TTL_MINUTES = 100 * 366 * 24 * 60;

/** How long a thread is kept after its last change, and what is deleted then. */
export interface ThreadLifetime {
  readonly strategy: TtlStrategy;
  readonly minutes: number;
}

export interface ThreadTtl extends ThreadLifetime {
  /**
   * Epoch milliseconds at which the thread's expiry is checked. If the thread was changed in the meantime, it does not
   * expire then, and gets a later time.
   */
  readonly due: number;
}

/** The time to live of a thread that was last changed at `at` (epoch milliseconds), with its due time. */
export function ttlWithDueTime({ strategy, minutes }: ThreadLifetime, at: number): ThreadTtl {
  return { strategy, minutes, due: Math.ceil(at + minutes * 60_000) };
}

/** Values with which a thread is created. */
export interface NewThreadValues {
  readonly metadata?: JsonObject;
  readonly ttl?: ThreadLifetime | null;
  /** Set if the thread is made for one run: it is hidden, and deleted once the run has ended and its readers have seen the end. */
  readonly temporary?: TemporaryKind | null;
}

/**
 * How a stateless run (a run on a temporary thread) depends on its client. `background`: no client is connected. `bound`: the run ends when
 * its client disconnects. `free`: the client may disconnect and reconnect.
 */
export type TemporaryKind = "background" | "bound" | "free";

/** True when a run is in progress or queued. */
export function hasWork({ active, queue }: ThreadRecord): boolean {
  return active !== null || queue.length > 0;
}

/** The status in the API: busy while a run is in progress or queued. */
export function threadStatusOf(thread: ThreadRecord): ThreadStatus {
  return hasWork(thread) ? "busy" : settledStatus(thread);
}

/** The status in the API of a thread without work. */
export function settledStatus({ rest }: Pick<ThreadRecord, "rest">): Exclude<ThreadStatus, "busy"> {
  return rest === "success" ? "idle" : rest;
}

/** The record of a new thread: not stored yet (`seq` 0), without runs. */
export function newThreadRecord(
  id: string,
  now: number,
  { metadata = {}, temporary = null, ttl = null }: NewThreadValues = {},
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
    ttl: ttl === null ? null : ttlWithDueTime(ttl, now),
    state_bytes: 0,
    timers: null,
  };
}

/**
 * A copy of a thread with changed members. The members are listed one by one, in the order of {@link newThreadRecord}, so that all records
 * have the same hidden class in V8: each copy by spread would get its own class, and reads of records would be slower.
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
    state_bytes: change.state_bytes === undefined ? thread.state_bytes : change.state_bytes,
    timers: change.timers === undefined ? thread.timers : change.timers,
  };
}

/** True when the thread lists the run as one that has not ended: in progress, queued, or delayed. */
export function listsRun({ active, queue, delayed }: ThreadRecord, run: string): boolean {
  return active === run || queue.includes(run) || (delayed?.some((one) => one.run === run) ?? false);
}
