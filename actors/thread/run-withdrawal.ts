import type { NewDelivery } from "../../src/model/webhook-delivery.ts";
import type { CancelAction, MultitaskStrategy, RunRecord } from "../../src/model/run.ts";
import { changeThread, type ThreadRecord } from "../../src/model/thread.ts";
import { timersWith } from "../../src/model/machine-timer.ts";
import type { LiveThread } from "./live-thread.ts";
import { strongerStop, actionOnQueuedRuns } from "./multitask.ts";
import { endedRun, makeDeliveriesWithoutState } from "./record-changes.ts";

/** The part of an append that ends runs before they have started. `runs` are stored as ended, `forget` are deleted. */
export interface WithdrawnRuns {
  readonly runs: readonly RunRecord[];
  readonly forget: readonly string[];
  readonly outbox?: readonly NewDelivery[];
}

/** Returns the part of an append that ends runs which have not started. `reason`: stored as their `cancel_reason`. */
export function withdrawRuns(
  runs: readonly RunRecord[],
  action: CancelAction,
  now: number,
  reason: string | null = null,
): WithdrawnRuns {
  if (action === "rollback") return { runs: [], forget: runs.map(({ run_id }) => run_id) };
  const out = runs.map((run) => ({ ...endedRun(run, "interrupted", now), cancel_reason: reason }));
  return { runs: out, forget: [], ...makeDeliveriesWithoutState(out) };
}

/** The `cancel_reason` of the runs that a new run supersedes. */
export const supersededBy = ({ run_id }: RunRecord): string => `superseded by run ${run_id}`;

/**
 * Returns the part of an append that ends the waiting runs which a new run supersedes by its multitask strategy. Null
 * if the new run supersedes no waiting run.
 */
export function withdrawSuperseded(
  liveThread: LiveThread,
  run: RunRecord,
  strategy: MultitaskStrategy,
  now: number,
): WithdrawnRuns | null {
  const action = actionOnQueuedRuns(strategy);
  if (action === null) return null;
  if (liveThread.record.queue.length === 0 && liveThread.delayed.size === 0) return null;
  const queued = liveThread.record.queue.flatMap((id) => liveThread.runs.get(id) ?? []);
  return withdrawRuns([...queued, ...liveThread.delayed.values()], action, now, supersededBy(run));
}

/**
 * The thread's record without the delayed runs that a new run supersedes. If a superseded run was to send the event of
 * a timer, the timer becomes due again.
 */
export function threadWithoutSuperseded(thread: ThreadRecord, out: WithdrawnRuns): ThreadRecord {
  const gone = new Set<string | null>(withdrawnIds(out));
  const timers = timersWith(thread.timers, ({ run }) => gone.has(run), null);
  return changeThread(thread, { delayed: null, timers });
}

export const withdrawnIds = ({ runs, forget }: WithdrawnRuns): readonly string[] => [
  ...runs.map(({ run_id }) => run_id),
  ...forget,
];

/** Removes a waiting run from memory and from the concurrency limiter. */
export function removeWaitingRun(liveThread: LiveThread, id: string): void {
  liveThread.runs.delete(id);
  liveThread.delayed.delete(id);
  liveThread.owner.limiter.release(id);
}

/** Notifies readers and waiting requests that these runs have ended. Called when the end is stored. */
export function notifyWithdrawn(liveThread: LiveThread, out: WithdrawnRuns): void {
  for (const id of withdrawnIds(out)) {
    liveThread.owner.totals.withdrawn++;
    liveThread.deps.sinks.dismiss(liveThread.key, id);
    liveThread.owner.runEnded(liveThread, id, { run: out.runs.find(({ run_id }) => run_id === id) });
  }
  // The machine of the run in progress may now process events that were queued behind these runs.
  liveThread.attempt?.mailbox.changed();
}

/** Marks the active run as cancelled in its record, so that the request for the cancellation survives a crash. */
export function markActiveCancelled(
  liveThread: LiveThread,
  action: CancelAction,
  reason: string | null = null,
): RunRecord[] {
  const active =
    liveThread.record.active === null ? undefined : liveThread.runs.get(liveThread.record.active);
  if (active === undefined) return [];
  const marked = {
    ...active,
    cancel: strongerStop(active.cancel, action),
    cancel_reason: active.cancel_reason ?? reason,
  };
  liveThread.runs.set(active.run_id, marked);
  return [marked];
}
