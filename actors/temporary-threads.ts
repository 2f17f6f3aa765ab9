import { hasWork, threadMapKey, type ThreadKey, type ThreadRecord } from "../src/model/thread.ts";
import type { Clock } from "../src/ports/clock.ts";
import type { Journal } from "../src/ports/journal.ts";
import type { Logger } from "../src/ports/logger.ts";
import type { Scheduler } from "../src/ports/scheduler.ts";
import type { RunEventSinks } from "../src/ports/event-sink.ts";
import type { RunEnd, SystemLimits } from "./thread-system-interface.ts";
import type { LiveThread } from "./thread/live-thread.ts";
import { endedRun, makeDeliveriesWithoutState } from "./thread/record-changes.ts";

interface Deps {
  readonly journal: Journal;
  readonly sinks: Pick<RunEventSinks, "isRead">;
  readonly clock: Clock;
  readonly scheduler: Scheduler;
  readonly logger: Logger;
  readonly limits: Pick<SystemLimits, "linger">;
}

/** Removes a thread from memory, and deletes it by `write`. */
type WithoutActor = (liveThread: LiveThread, write: () => Promise<void>) => Promise<void>;

/**
 * What to do with a temporary thread that an earlier process has left. `delete`: its run depended on a connection to that process (`bound`).
 * `keep`: its run has ended. The thread is kept for a while, because clients that waited for the run may come back for its result; in a
 * cluster, other processes do so on their behalf.
 */
export function recoveryOfTemporary(thread: ThreadRecord): "continue" | "delete" | "keep" {
  if (thread.temporary === "bound") return "delete";
  return hasWork(thread) || thread.delayed !== null ? "continue" : "keep";
}

/** Deletes threads that were created for a single run when that run has ended. */
export class TemporaryThreads {
  readonly #deps: Deps;
  readonly #withoutActor: WithoutActor;
  readonly #isStopping: () => boolean;
  /**
   * For each thread that requests are about to read: the number of these requests, and the callbacks to call when none
   * is left. By thread key.
   */
  readonly #pendingReads = new Map<string, { requests: number; readonly afterwards: (() => void)[] }>();
  /** The keys of threads whose runs an earlier process has begun: readers of that process may come back. */
  readonly #continued = new Set<string>();

  constructor(deps: Deps, withoutActor: WithoutActor, isStopping: () => boolean) {
    this.#deps = deps;
    this.#withoutActor = withoutActor;
    this.#isStopping = isStopping;
  }

  /** Keeps a thread until the returned function is called. The caller MUST call that function exactly once. */
  keep(key: ThreadKey): () => void {
    const name = threadMapKey(key);
    const pending = this.#pendingReads.get(name) ?? { requests: 0, afterwards: [] };
    this.#pendingReads.set(name, pending);
    pending.requests++;
    return () => {
      if (--pending.requests > 0) return;
      this.#pendingReads.delete(name);
      for (const end of pending.afterwards) end();
    };
  }

  /** Notes that an earlier process has begun the run of this thread, and this process continues it. */
  noteContinued(key: ThreadKey): void {
    this.#continued.add(threadMapKey(key));
  }

  /**
   * Handles the end of a run. If the thread is temporary and has no other run, deletes it: later if a client still
   * reads the run or may come back to read it, else at once.
   */
  runEnded(liveThread: LiveThread, id: string, { run }: RunEnd, isRead: boolean): void {
    const { temporary } = liveThread.record;
    if (temporary === null || liveThread.runs.size > 0) return;
    const name = threadMapKey(liveThread.key);
    const mayComeBack = this.#continued.delete(name) || temporary === "free";
    // A client that has cancelled its run does not come back to read the run.
    const isAwaited = mayComeBack && run !== undefined && run.cancel === null;
    const remove = () =>
      void this.#withoutActor(liveThread, () => this.remove(liveThread.key, liveThread.record));
    const end = (lingers: boolean) => {
      if (lingers) this.#deps.scheduler.after(this.#deps.limits.linger, remove);
      else remove();
    };
    const pending = this.#pendingReads.get(name);
    if (isRead || isAwaited || pending === undefined) end(isRead || isAwaited);
    else pending.afterwards.push(() => end(this.#deps.sinks.isRead(liveThread.key, id)));
  }

  /**
   * Deletes a temporary thread that an earlier process has left. If its run has not ended and has a webhook, the run is
   * first stored as interrupted, so that the webhook is called: the run's client lost its connection when that process
   * ended.
   */
  async deleteLeftover(key: ThreadKey, thread: ThreadRecord): Promise<void> {
    const { journal, clock } = this.#deps;
    const id = thread.active ?? thread.queue[0] ?? thread.delayed?.[0]?.run;
    const run = id === undefined ? undefined : await journal.run(key, id);
    if (run === undefined || run.kwargs.webhook === null) return this.remove(key, thread);
    const { epoch, seq } = thread;
    const stopped = { ...thread, active: null, queue: [], delayed: null, seq: seq + 1 };
    const next_event = await journal.nextEvent(key, run.run_id);
    const runs = [{ ...endedRun(run, "interrupted", clock.now()), next_event }];
    await journal.append({
      key,
      fence: { epoch, seq },
      kind: "withdrawn",
      durable: true,
      thread: stopped,
      runs,
      ...makeDeliveriesWithoutState(runs),
    });
    return this.remove(key, stopped);
  }

  /** Deletes temporary threads that an earlier process has left after the ends of their runs, when their readers had time to come back. */
  deleteLater(ended: readonly (readonly [ThreadKey, ThreadRecord])[]): void {
    if (ended.length === 0) return;
    this.#deps.scheduler.after(this.#deps.limits.linger, () => {
      for (const [key, record] of ended) void this.remove(key, record);
    });
  }

  /**
   * Deletes a temporary thread. Never rejects: if the deletion fails, for example because the server stops and has closed the storage, the thread
   * is deleted when the server starts again.
   */
  async remove(key: ThreadKey, { epoch, seq }: ThreadRecord): Promise<void> {
    await this.#deps.journal.remove(key, { epoch, seq }).catch((cause: unknown) => {
      const level = this.#isStopping() ? "debug" : "info";
      this.#deps.logger[level]("a temporary thread could not be deleted; the next start deletes it", {
        thread: key.thread,
        cause: String(cause),
      });
    });
  }
}
