import type { ThreadSystem } from "../../actors/thread-system-interface.ts";
import { ServiceError } from "../model/errors.ts";
import type { CancelAction, RunRecord } from "../model/run.ts";
import type { Permits } from "../model/permitted-resources.ts";
import type { ThreadKey, ThreadRecord } from "../model/thread.ts";
import type { Journal } from "../ports/journal.ts";
import { permittedThread, visibleThread } from "./threads.ts";

/** Which unfinished runs to cancel: those that have not started, those in progress, or both. */
export type CancelTarget = "pending" | "running" | "all";

export interface CancelOptions {
  /** True: waits until the run has ended. Otherwise the promise resolves when the cancellation is stored. */
  readonly wait?: boolean;
  /** The reason for the cancellation. It is stored with the run as `cancel_reason`. */
  readonly reason?: string;
}

export interface RunCancellation {
  /**
   * Cancels the run. Has no effect on a run that has ended.
   * @throws ServiceError `run.not_found`, `thread.not_found`
   */
  cancel(key: ThreadKey, run: string, action: CancelAction, options?: CancelOptions): Promise<void>;
  /**
   * Registers that the client wants the run to end when the client's connection closes. A shutdown of the server closes the connection, so
   * the run ends at the shutdown, and is not continued when the server starts again.
   */
  cancelOnDisconnect(key: ThreadKey, run: string): void;
  /** Cancels the unfinished runs of a thread, including queued and delayed runs. @throws ServiceError `thread.not_found` */
  cancelAll(
    key: ThreadKey,
    action: CancelAction,
    which: CancelTarget,
    options?: CancelOptions,
  ): Promise<void>;
  /** Cancels these runs. @throws ServiceError `run.not_found` (then none is cancelled), `thread.not_found` */
  cancelSome(key: ThreadKey, runs: readonly string[], action: CancelAction): Promise<void>;
  /** Cancels all unfinished runs of a tenant's permitted threads. */
  cancelEverywhere(
    tenant: string,
    action: CancelAction,
    which: CancelTarget,
    permits?: Permits,
  ): Promise<void>;
  /**
   * Deletes a run that has ended, with its events and checkpoints.
   * @throws ServiceError `run.not_found`, `thread.not_found`, `run.conflict`, `thread.busy`
   */
  remove(key: ThreadKey, run: string): Promise<void>;
}

interface Deps {
  readonly system: ThreadSystem;
  readonly journal: Journal;
  readonly find: (key: ThreadKey, run: string) => Promise<RunRecord>;
}

/**
 * The reason that clients give when they cancel a run because another run continues with its input. Clients look for this word in the
 * cancelled run, so the stored text begins with it.
 */
const TAKEN = "taken";
const reasonOf = (reason: string | undefined) =>
  reason === TAKEN ? `${TAKEN}: another run has taken up its input` : reason;

/** The largest number of delayed runs, of all tenants, that are read to find the delayed runs of one tenant. */
const MAX_DELAYED_RUNS_READ = 100_000;
/** The number of runs that are cancelled at a time. */
const MAX_CONCURRENT_CANCELS = 32;

export function createRunCancellation({ system, journal, find }: Deps): RunCancellation {
  /**
   * The ids of a thread's unfinished runs. The run that would start last comes first, and the run in progress comes last: if runs are
   * cancelled in this order, the end of one run does not start another.
   */
  function inFlight(key: ThreadKey, thread: ThreadRecord, which: CancelTarget): readonly string[] {
    const { active, queue, delayed } = thread;
    const isRunning = active !== null && system.isRunning(key, active);
    const waiting = [...(delayed ?? []).map(({ run }) => run), ...queue.toReversed()];
    const pending = active !== null && !isRunning ? [...waiting, active] : waiting;
    const running = isRunning ? [active] : [];
    return which === "pending" ? pending : which === "running" ? running : [...pending, ...running];
  }

  async function end(
    key: ThreadKey,
    runs: readonly string[],
    action: CancelAction,
    { wait = false, reason }: CancelOptions = {},
  ): Promise<void> {
    for (let from = 0; from < runs.length; from += MAX_CONCURRENT_CANCELS) {
      const some = runs.slice(from, from + MAX_CONCURRENT_CANCELS);
      await Promise.all(
        some.map((run) => system.cancel(key, run, action, reasonOf(reason)).catch(ignoreMissing)),
      );
    }
    if (wait) await Promise.all(runs.map((run) => system.settled(key, run)));
  }

  return {
    async cancel(key, id, action, { wait = false, reason } = {}) {
      await find(key, id);
      await system.cancel(key, id, action, reasonOf(reason));
      if (wait) await system.settled(key, id);
    },

    cancelOnDisconnect(key, id) {
      system.cancelOnDisconnect(key, id);
    },

    async cancelAll(key, action, which, options) {
      await end(key, inFlight(key, await visibleThread(journal, key), which), action, options);
    },

    async cancelSome(key, runs, action) {
      for (const run of runs) await find(key, run);
      await end(key, runs, action);
    },

    async cancelEverywhere(tenant, action, which, permits) {
      const threads = new Set<string>();
      for await (const key of journal.unsettled()) if (key.tenant === tenant) threads.add(key.thread);
      for (const { key } of await journal.delayedRuns(MAX_DELAYED_RUNS_READ))
        if (key.tenant === tenant) threads.add(key.thread);
      for (const thread of threads) {
        const key = permits === undefined ? { tenant, thread } : { tenant, thread, permits };
        const record = await permittedThread(journal, key);
        if (record !== undefined) await end(key, inFlight(key, record, which), action);
      }
    },

    async remove(key, run) {
      await find(key, run);
      await system.forget(key, run);
    },
  };
}

/** Ignores that a run or thread does not exist: it has ended or was rolled back since it was looked up. */
function ignoreMissing(cause: unknown): void {
  if (cause instanceof ServiceError && (cause.code === "run.not_found" || cause.code === "thread.not_found"))
    return;
  throw cause;
}
