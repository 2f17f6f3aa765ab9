import { ServiceError } from "../../src/model/errors.ts";
import type { RunRecord } from "../../src/model/run.ts";
import type { ThreadRecord } from "../../src/model/thread.ts";
import type { RunDraft } from "../thread-system-interface.ts";
import { threadUnavailable, type LiveThread } from "./live-thread.ts";
import { threadSituationOf } from "./thread-chart.ts";
import { actionOnActiveRun, type MultitaskDecision } from "./multitask.ts";
import { threadAfterAdmission, withRunConfig } from "./record-changes.ts";
import { beginStoredAttempt, slotRequestOf, storeRunStart } from "./run-start.ts";
import {
  notifyWithdrawn,
  removeWaitingRun,
  withdrawnIds,
  markActiveCancelled,
  supersededBy,
  threadWithoutSuperseded,
  type WithdrawnRuns,
} from "./run-withdrawal.ts";

/** The most delayed runs of a thread. The thread's record lists all of them, so this limits the size of the record. */
const MAX_DELAYED_RUNS = 1_000;

/**
 * A thread with at most this many delayed runs is removed from memory at once, because so few are cheap to read again.
 * A thread with more delayed runs stays until its idle time is over.
 */
const FEW_TO_READ = 16;

/** The thread's delayed runs without the run `id`; null if no other is left. */
export function delayedRunsWithout(thread: ThreadRecord, id: string): ThreadRecord["delayed"] {
  const rest = thread.delayed?.filter(({ run }) => run !== id) ?? [];
  return rest.length === 0 ? null : rest;
}

/**
 * Stores a run that starts later. The run's multitask strategy applies now: superseded runs end at once. Until the run
 * starts, it does not make the thread busy.
 */
export async function storeDelayedRun(
  liveThread: LiveThread,
  draft: RunDraft,
  run: RunRecord,
  decision: MultitaskDecision,
  out: WithdrawnRuns | null,
): Promise<RunRecord> {
  const { actor } = liveThread;
  const { run_id: id } = run;
  const due = run.due ?? 0;
  if (liveThread.delayed.size >= MAX_DELAYED_RUNS) {
    throw new ServiceError(
      "server.busy",
      `${MAX_DELAYED_RUNS} delayed runs of this thread are waiting already`,
    );
  }
  const action = actionOnActiveRun(decision);
  const stopped = action === null ? [] : markActiveCancelled(liveThread, action, supersededBy(run));
  const waiting = liveThread.record.queue;
  liveThread.delayed.set(id, run);
  const change = {
    kind: "admitted",
    durable: true,
    ...out,
    runs: [run, ...stopped, ...(out?.runs ?? [])],
    ...(draft.once && { once: draft.once }),
  };
  const stored = liveThread.write(change, (before) => {
    const thread = out === null ? before : threadWithoutSuperseded(before, out);
    return {
      ...withRunConfig(threadAfterAdmission(thread, run, { kind: "start" }, false), draft.config),
      queue: out === null ? thread.queue : [],
      delayed: [...(thread.delayed ?? []), { run: id, due }],
    };
  });
  if (out !== null) {
    for (const gone of withdrawnIds(out)) removeWaitingRun(liveThread, gone);
    // The actor is notified of these runs in reverse order, so that none of them becomes the next run.
    for (const run of waiting.toReversed()) actor?.send({ type: "RUN.WITHDRAWN", run });
  }
  if (action !== null)
    for (const { run_id } of stopped) actor?.send({ type: "RUN.CANCEL", run: run_id, action });
  liveThread.owner.activityChanged(liveThread);
  await stored;
  // Scheduled after the run is stored, because due runs are looked up in the storage.
  liveThread.owner.delayedRuns.schedule(due);
  if (out !== null) notifyWithdrawn(liveThread, out);
  // Frees the memory of the input, which is read again when the run is due. Ten inputs of 4 MB would take 170 MB of heap until
  // the idle time is over.
  if (liveThread.delayed.size <= FEW_TO_READ) liveThread.owner.passivate(liveThread);
  return run;
}

/**
 * Handles a delayed run that is due: it starts, or waits behind all queued runs. Resolves with false when the thread
 * does not list the run.
 */
export async function startDelayedRun(liveThread: LiveThread, id: string): Promise<boolean> {
  const { actor } = liveThread;
  if (actor === undefined || !liveThread.alive) throw threadUnavailable();
  const run = liveThread.delayed.get(id);
  if (run === undefined) {
    // The run was cancelled in the meantime. Waits until that is stored: before that, each lookup of due runs finds the
    // run again.
    await liveThread.lastWrite;
    return false;
  }
  const admittedEvent = { type: "RUN.ADMITTED", run: id, strategy: "enqueue" } as const;
  const delayed = delayedRunsWithout(liveThread.record, id);
  if (
    threadSituationOf(actor.getSnapshot().value) === "resting" &&
    liveThread.owner.limiter.tryAcquire(slotRequestOf(liveThread, run))
  ) {
    const start = storeRunStart(liveThread, { ...liveThread.record, delayed }, run, "ripened", null);
    liveThread.delayed.delete(id);
    actor.send({ ...admittedEvent, starts: true });
    await start.stored;
    beginStoredAttempt(liveThread, start);
    return true;
  }
  liveThread.owner.runQueued(liveThread.key, run, true);
  liveThread.delayed.delete(id);
  liveThread.runs.set(id, run);
  const stored = liveThread.write({ kind: "due", durable: true }, (thread) => ({
    ...thread,
    delayed,
    queue: [...thread.queue, id],
  }));
  actor.send({ ...admittedEvent, starts: false });
  liveThread.owner.activityChanged(liveThread);
  await stored;
  return true;
}
