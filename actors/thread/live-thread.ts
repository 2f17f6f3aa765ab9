import type { AnyActorRef } from "../xstate.ts";
import type { CheckpointHead, PendingTaskWrites } from "../../src/model/checkpoint.ts";
import { ServiceError } from "../../src/model/errors.ts";
import { SmallMap } from "../../src/model/small-map.ts";
import type { JsonObject } from "../../src/model/json.ts";
import type { RunRecord } from "../../src/model/run.ts";
import { changeThread, hasWork, type ThreadKey, type ThreadRecord } from "../../src/model/thread.ts";
import type { CheckpointWithState, ExecutionServices } from "../../src/ports/engine.ts";
import { andThen, type Eventually } from "../../src/ports/eventually.ts";
import type { Append } from "../../src/ports/journal.ts";
import type { RunAttempt } from "../run/attempt.ts";
import type { DueQueue } from "../due-queue.ts";
import type { ConcurrencyLimiter } from "../concurrency-limiter.ts";
import type { RunMemoryBudget } from "../run-memory-budget.ts";
import type { IdleEntry } from "../idle-threads.ts";
import type { RunEnd, SystemDeps } from "../thread-system-interface.ts";
import type { BeginQueue } from "../begin-queue.ts";
import type { RunTotals } from "../run-totals.ts";
import { CheckpointIdGenerator } from "./checkpoint-ids.ts";
import { findInconsistency, INCONSISTENT_WRITE_MESSAGE } from "./record-invariants.ts";
import { StateSizeEstimate } from "./state-size-estimate.ts";

/** The changes of one append, without the thread's record. */
export type AppendWithoutThread = Omit<Append, "key" | "fence" | "thread">;

/** The part of the `ThreadRegistry` (all threads in memory) that a live thread needs. */
export interface LiveThreadOwner {
  /** True when the server is stopping: then no run goes beyond its current superstep. */
  readonly draining: boolean;
  /** Decides which run may start, by giving slots to runs. */
  readonly limiter: ConcurrencyLimiter;
  readonly runningStates: RunMemoryBudget;
  /** The queue of runs that are about to begin. */
  readonly starts: BeginQueue;
  readonly totals: RunTotals;
  /** Starts delayed runs when they are due. */
  readonly delayedRuns: DueQueue;
  /** Schedules the next timer of a thread, if it has one. Called when the record with the timer is stored. */
  scheduleTimer(key: ThreadKey, thread: ThreadRecord): void;
  /**
   * Counts a run that waits to start. `isTaken`: the run was accepted earlier, so it is counted even if too many wait.
   * @throws ServiceError `server.busy` when too many runs wait
   */
  runQueued(key: ThreadKey, run: RunRecord, isTaken?: boolean): void;
  /** The bytes in memory of the input of a run that waits to start; undefined if the run does not wait. */
  queuedInputBytes(run: string): number | undefined;
  /** Called when a run no longer waits, because an attempt of it starts. */
  runStarted(run: string): void;
  /** Called when the run in progress has paused for the shutdown: none of its nodes runs, and none will start. */
  runHalted(liveThread: LiveThread): void;
  /** Called when a run has ended and its end is stored. `isRead`: somebody still reads its stream. */
  runEnded(liveThread: LiveThread, run: string, end: RunEnd, isRead?: boolean): void;
  /** Called when the thread may have become idle or busy. */
  activityChanged(liveThread: LiveThread): void;
  /** Removes the thread from memory, unless it has runs, writes in flight, or requests that are about to use it. */
  passivate(liveThread: LiveThread): void;
  /**
   * Called when a write or an actor failed. The live thread must not be used any more, and the thread has to be loaded
   * again from its records.
   */
  broken(liveThread: LiveThread, cause: unknown): void;
}

/**
 * One thread in memory: its record, its runs that have not ended, the state of its latest checkpoint, and its actor.
 * The appends of a thread in memory go through this object; chunks of streamed events do not.
 */
export class LiveThread {
  readonly key: ThreadKey;
  readonly deps: SystemDeps;
  readonly owner: LiveThreadOwner;
  /** The record as it will be when every write in flight is stored. */
  record: ThreadRecord;
  /** The runs that have not ended, without the delayed ones. */
  readonly runs = new SmallMap<string, RunRecord>();
  /** The delayed runs, which wait for their time. They do not make the thread busy. */
  readonly delayed = new SmallMap<string, RunRecord>();
  actor: AnyActorRef | undefined;
  attempt: RunAttempt | null = null;
  alive = true;
  /**
   * True when a write or the actor failed. A live thread that is neither alive nor broken was only removed from memory,
   * and its thread can be loaded again.
   */
  isBroken = false;
  /** The number of writes in flight: the actor must not be removed from memory before they end. */
  inFlight = 0;
  /**
   * The last write in flight: resolves when it is stored, rejects if it fails. Undefined when no write is in
   * flight.
   */
  lastWrite: Promise<void> | undefined;
  /**
   * The number of requests that are about to use this object. Unless it is 0, the object must not be removed from
   * memory.
   */
  claims = 0;
  /** The thread's entry in the list of idle threads; null while it is busy. */
  idleEntry: IdleEntry<LiveThread> | null = null;
  /** An estimate of the size of the thread's state, also while the state is not in memory. */
  readonly stateSize: StateSizeEstimate;
  #cachedPosition: CheckpointWithState | null = null;
  readonly #ids: CheckpointIdGenerator;

  constructor(key: ThreadKey, record: ThreadRecord, deps: SystemDeps, owner: LiveThreadOwner) {
    this.key = key;
    this.record = record;
    this.deps = deps;
    this.owner = owner;
    this.stateSize = new StateSizeEstimate(record.state_bytes, deps.limits.largeState);
    this.#ids = new CheckpointIdGenerator(deps.clock, deps.random);
    if (record.checkpoint !== null) this.#ids.saw(record.checkpoint);
  }

  /**
   * Appends a change to the thread's journal. Resolves when the change is stored. If storing fails, rejects, and the
   * live thread is marked as broken. With `unseen`, `updated_at` and `rested_at` do not change.
   */
  write(
    change: AppendWithoutThread,
    update: (thread: ThreadRecord) => ThreadRecord,
    unseen = false,
  ): Promise<void> {
    if (!this.alive) return Promise.reject(threadUnavailable());
    const before = this.record;
    const updated_at = unseen ? before.updated_at : this.deps.clock.now();
    const updated = update(before);
    const rested_at = unseen || hasWork(updated) ? before.rested_at : updated_at;
    const state_bytes = this.stateSize.toStore(before.state_bytes);
    const thread = changeThread(updated, { seq: before.seq + 1, updated_at, rested_at, state_bytes });
    const wrong = findInconsistency(before, thread, change);
    if (wrong !== undefined) return this.#refuse(change.kind, wrong);
    this.record = thread;
    this.inFlight++;
    const fence = { epoch: before.epoch, seq: before.seq };
    const { kind, durable, runs, checkpoints, writes, steps, events, forget, once, outbox } = change;
    const append = {
      key: this.key,
      fence,
      kind,
      durable,
      thread,
      runs,
      checkpoints,
      writes,
      steps,
      events,
      forget,
      once,
      outbox,
    };
    const stored = this.deps.journal.append(append).then(
      () => {
        if (--this.inFlight === 0) this.lastWrite = undefined;
        if (thread.timers !== null) this.owner.scheduleTimer(this.key, thread);
      },
      (cause: unknown) => {
        this.inFlight--;
        this.discard(cause);
        throw cause;
      },
    );
    this.lastWrite = stored;
    return stored;
  }

  /**
   * Refuses a write that would make the thread's records inconsistent. The stored records are still consistent, so the
   * thread is loaded again from them.
   */
  #refuse(kind: string, why: string): Promise<never> {
    this.deps.logger.error(INCONSISTENT_WRITE_MESSAGE, { thread: this.key.thread, kind, why });
    const cause = new ServiceError("journal.conflict", `Thread ${this.key.thread}: ${why}`);
    this.discard(cause);
    return Promise.reject(cause);
  }

  /** The tenant, the time and new checkpoint ids for executions of this thread's runs. */
  source(): ExecutionServices {
    return {
      tenant: this.key.tenant,
      now: () => this.deps.clock.now(),
      checkpointId: (step, made) => (made === undefined ? this.#ids.next(step) : this.#ids.above(made, step)),
    };
  }

  /**
   * Records a checkpoint id, so that new ids are above it. A checkpoint of a subgraph or of another branch may have a
   * higher id than the thread's latest checkpoint.
   */
  noteCheckpointId(checkpoint: string): void {
    this.#ids.saw(checkpoint);
  }

  /** The position from which the next run starts. It is cached after each run; if it is not cached, it is read. */
  position(): Eventually<CheckpointWithState> {
    if (this.#cachedPosition !== null) return this.#cachedPosition;
    const id = this.record.checkpoint;
    if (id === null) return { head: null, values: {}, writes: [] };
    return andThen(this.positionAt(id), (position) => {
      if (position !== undefined) return position;
      // If the thread has another checkpoint now, the run that made the checkpoint `id` was deleted during the read.
      if (this.record.checkpoint !== id) return this.position();
      throw new ServiceError("journal.damaged", `Checkpoint ${id} of thread ${this.key.thread} is missing`);
    });
  }

  /**
   * The position (checkpoint, state and pending writes) at one of the thread's checkpoints; undefined if there is no
   * such checkpoint.
   */
  positionAt(id: string, ns = ""): Eventually<CheckpointWithState | undefined> {
    const { journal } = this.deps;
    const read = (): Eventually<CheckpointWithState | undefined> =>
      andThen(journal.checkpoint(this.key, ns, id), (head) => {
        if (head === undefined) return undefined;
        return andThen(journal.values(this.key, head), (values) =>
          andThen(journal.writes(this.key, ns, id), (writes) => ({ head, values, writes })),
        );
      });
    // The journal shows only what is stored, and the checkpoint may still be in flight.
    return this.lastWrite === undefined ? read() : this.lastWrite.then(read);
  }

  /** The state if it is in memory; else null. */
  get values(): JsonObject | null {
    return this.attempt?.root.values ?? this.#cachedPosition?.values ?? null;
  }

  /** The bytes of the thread's state, if it is large and in memory; else 0. */
  get largeStateBytes(): number {
    return this.stateSize.isLarge && this.values !== null ? this.stateSize.bytes : 0;
  }

  /** Caches the state of the latest checkpoint, so that the next run need not read it. */
  cachePosition(head: CheckpointHead | null, values: JsonObject, writes: readonly PendingTaskWrites[]): void {
    this.#cachedPosition = { head, values, writes };
  }

  /** Updates the cached task writes of the latest checkpoint. */
  updateCachedWrites(writes: readonly PendingTaskWrites[]): void {
    if (this.#cachedPosition === null) return;
    const { id } = this.#cachedPosition.head ?? {};
    const now = new Map(this.#cachedPosition.writes.map((one) => [one.task, one]));
    for (const one of writes) if (one.ns === "" && one.checkpoint === id) now.set(one.task, one);
    this.#cachedPosition = { ...this.#cachedPosition, writes: [...now.values()] };
  }

  /** Drops the cached state. Called when the state is out of date or takes much memory. */
  forget(): void {
    this.#cachedPosition = null;
  }

  dropLargeState(): void {
    if (this.stateSize.isLarge) this.forget();
  }

  /**
   * Marks the live thread as broken. After a failed write it is not known what is stored, so everything in memory is
   * dropped and read again.
   */
  discard(cause: unknown): void {
    if (!this.alive) return;
    this.alive = false;
    this.isBroken = true;
    this.attempt?.revoke();
    this.attempt?.sink.abandon();
    this.owner.broken(this, cause);
  }
}

export function threadUnavailable(): ServiceError {
  return new ServiceError("storage.unavailable", "The thread's storage failed; try again");
}
