import { threadNotFound } from "../src/model/errors.ts";
import type { JsonObject } from "../src/model/json.ts";
import {
  assertPermitted,
  isPermitted,
  newThreadRecord,
  ttlWithDueTime,
  type ThreadKey,
  type ThreadRecord,
} from "../src/model/thread.ts";
import { timersWith } from "../src/model/machine-timer.ts";
import type { Eventually } from "../src/ports/eventually.ts";
import type { SystemDeps, ThreadPatch, ThreadOperations } from "./thread-system-interface.ts";
import { cancelThreadRun } from "./thread/admission.ts";
import type { LiveThread } from "./thread/live-thread.ts";

/** The part of the `ThreadRegistry` (all threads in memory) that {@link ThreadAdministration} needs. */
export interface ThreadAdministrationOwner {
  /**
   * Waits until no other request holds the thread's lock, then runs the work. Until the work is done, no run is
   * admitted to the thread.
   */
  withLock<T>(key: ThreadKey, work: () => Promise<T>): Promise<T>;
  /** @throws ServiceError `server.draining` if the server is shutting down */
  refuseWhenDraining(): void;
  /**
   * Returns the live thread, and loads it first if it is not in memory.
   * @throws ServiceError `thread.not_found`
   */
  wake(key: ThreadKey): Eventually<LiveThread>;
  /** Removes the thread from memory, and deletes or prunes it by `write`. */
  withoutActor(liveThread: LiveThread, write: () => Promise<void>): Promise<void>;
  settled(key: ThreadKey, run: string): Promise<unknown>;
  scheduleTimer(key: ThreadKey, thread: ThreadRecord): void;
  /**
   * Called before the thread is to be deleted. Until the returned function is called, the end of each of
   * the thread's runs is reported together with `isDeleted`, which resolves with whether the thread was
   * deleted.
   */
  endsWithThread(key: ThreadKey, isDeleted: Promise<boolean>): () => void;
}

type Deps = Pick<SystemDeps, "journal" | "clock" | "sinks">;

/** Administration of threads: changes, copies, deletion, pruning and expiry. */
export class ThreadAdministration implements ThreadOperations {
  readonly #deps: Deps;
  readonly #keeper: ThreadAdministrationOwner;

  constructor(deps: Deps, keeper: ThreadAdministrationOwner) {
    this.#deps = deps;
    this.#keeper = keeper;
  }

  update(key: ThreadKey, { metadata, ttl }: ThreadPatch): Promise<ThreadRecord> {
    return this.#alone(key, async () => {
      const liveThread = await this.#liveThread(key);
      const now = this.#deps.clock.now();
      await liveThread.write({ kind: "updated", durable: true }, (thread) => ({
        ...thread,
        ...(metadata && { metadata: { ...thread.metadata, ...metadata } }),
        ...(ttl !== undefined && { ttl: ttl && ttlWithDueTime(ttl, now) }),
      }));
      return liveThread.record;
    });
  }

  copy(from: ThreadKey, to: ThreadKey, metadata?: JsonObject): Promise<ThreadRecord> {
    return this.#alone(to, async () => {
      const now = this.#deps.clock.now();
      const made = await this.#deps.journal.copy(from, to, (thread) => {
        assertPermitted(from, thread);
        return copied(thread, to.thread, now, metadata);
      });
      this.#keeper.scheduleTimer(to, made);
      return made;
    });
  }

  remove(key: ThreadKey): Promise<void> {
    return this.#alone(key, () => this.#remove(key));
  }

  prune(key: ThreadKey): Promise<boolean> {
    return this.#alone(key, () => this.#prune(key));
  }

  expire(key: ThreadKey): Promise<void> {
    return this.#alone(key, async () => {
      const liveThread = await this.#liveThread(key);
      const { ttl, rested_at } = liveThread.record;
      const now = this.#deps.clock.now();
      if (ttl === null || ttl.due > now) return;
      // The lifetime starts again with each use of the thread: from now if the thread is in use, else from
      // the end of its last use.
      const { due } = ttlWithDueTime(ttl, isInUse(liveThread) ? now : rested_at);
      if (due > now) return postpone(liveThread, due);
      if (ttl.strategy === "delete") return this.#remove(key);
      await this.#prune(key);
      await postpone(await this.#liveThread(key), ttlWithDueTime(ttl, now).due);
    });
  }

  #alone<T>(key: ThreadKey, work: () => Promise<T>): Promise<T> {
    return this.#keeper.withLock(key, async () => {
      this.#keeper.refuseWhenDraining();
      return work();
    });
  }

  /**
   * Loads the thread if it is not live.
   * @throws ServiceError `thread.not_found`, also if the thread is temporary or the user has no access to it
   */
  async #liveThread(key: ThreadKey): Promise<LiveThread> {
    const liveThread = await this.#keeper.wake(key);
    const { record } = liveThread;
    if (record.temporary !== null || !isPermitted(key, record)) throw threadNotFound(key.thread);
    return liveThread;
  }

  async #remove(key: ThreadKey): Promise<void> {
    const liveThread = await this.#liveThread(key);
    if (!isInUse(liveThread)) return this.#removeIdle(liveThread);
    const listeners: ((isDeleted: boolean) => void)[] = [];
    const isDeleted = new Promise<boolean>((resolve) => listeners.push(resolve));
    const release = this.#keeper.endsWithThread(key, isDeleted);
    let isDone = false;
    try {
      await this.#removeInUse(key, liveThread, listeners);
      isDone = true;
    } finally {
      release();
      for (const notify of listeners) notify(isDone);
    }
  }

  /**
   * Cancels the runs and deletes the thread. Adds callbacks to `listeners`; the caller calls each with whether the thread was deleted.
   */
  async #removeInUse(
    key: ThreadKey,
    first: LiveThread,
    listeners: ((isDeleted: boolean) => void)[],
  ): Promise<void> {
    for (let liveThread = first; ; liveThread = await this.#liveThread(key)) {
      if (!isInUse(liveThread)) return this.#removeIdle(liveThread);
      // Cancels the run in progress last: if it ended before the queued runs, the next queued run would begin.
      const runs = [...liveThread.delayed.keys(), ...[...liveThread.runs.keys()].toReversed()];
      listeners.push(this.#deps.sinks.removing(key, runs));
      try {
        for (const run of runs) await cancelThreadRun(liveThread, run, "interrupt", null);
      } catch (cause) {
        // The thread may have become idle, and been removed from memory because too many threads are idle. If so, the
        // loop loads the thread again.
        if (liveThread.alive || liveThread.isBroken) throw cause;
      }
      for (const run of runs) await this.#keeper.settled(key, run);
    }
  }

  async #removeIdle(liveThread: LiveThread): Promise<void> {
    const { epoch, seq } = liveThread.record;
    await this.#keeper.withoutActor(liveThread, () =>
      this.#deps.journal.remove(liveThread.key, { epoch, seq }),
    );
    this.#deps.sinks.removed(liveThread.key);
  }

  async #prune(key: ThreadKey): Promise<boolean> {
    const liveThread = await this.#liveThread(key);
    if (isInUse(liveThread)) return false;
    const { epoch, seq } = liveThread.record;
    // Removes the live thread first, because it caches the latest checkpoint, which is about to change.
    await this.#keeper.withoutActor(liveThread, () => this.#deps.journal.prune(key, { epoch, seq }));
    return true;
  }
}

/**
 * True when the thread has a run in progress, queued or delayed. Such a run may resume from any checkpoint, so no
 * checkpoint may be pruned.
 */
function isInUse({ runs, delayed }: LiveThread): boolean {
  return runs.size > 0 || delayed.size > 0;
}

/** Stores when to check the expiry of the thread again. `updated_at` does not change, so clients do not see this. */
function postpone(liveThread: LiveThread, due: number): Promise<void> {
  const later = (thread: ThreadRecord) => ({ ...thread, ttl: thread.ttl && { ...thread.ttl, due } });
  return liveThread.write({ kind: "postponed", durable: true }, later, true);
}

/**
 * The record of a copy. It has the same latest checkpoint as the original, so that interrupts can be answered differently
 * in the copy. A copy of a busy thread has the state that is stored so far, and is idle.
 */
function copied(
  origin: ThreadRecord,
  id: string,
  now: number,
  metadata: JsonObject = origin.metadata,
): ThreadRecord {
  const { epoch, seq, checkpoint, state_updated_at, state_bytes, ttl } = origin;
  const waits = origin.rest === "interrupted" && origin.active === null && origin.queue.length === 0;
  return {
    ...newThreadRecord(id, now, { metadata: { ...metadata, thread_id: id }, ttl }),
    ...(waits && { rest: origin.rest, interrupts: origin.interrupts }),
    state_updated_at: checkpoint === null ? now : state_updated_at,
    epoch,
    seq: seq + 1,
    checkpoint,
    state_bytes,
    timers: timersWith(origin.timers, () => true, null),
  };
}
