import { ServiceError } from "../../src/model/errors.ts";
import {
  type CancelAction,
  graphCommandOf,
  type MultitaskStrategy,
  type RunRecord,
} from "../../src/model/run.ts";
import { changeThread, type ThreadRecord } from "../../src/model/thread.ts";
import { isSameTimer, type Timer } from "../../src/model/machine-timer.ts";
import type { RunStartQueue } from "../begin-queue.ts";
import type { RunDraft } from "../thread-system-interface.ts";
import { refuseConflictingResume } from "./resume-conflicts.ts";
import { threadUnavailable, type LiveThread } from "./live-thread.ts";
import { threadSituationOf } from "./thread-chart.ts";
import { storeDelayedRun, delayedRunsWithout } from "./delayed-run.ts";
import { actionOnActiveRun, decideMultitask, type MultitaskDecision } from "./multitask.ts";
import { threadAfterAdmission, withRunConfig, newRun } from "./record-changes.ts";
import { beginStoredAttempt, type AdmissionExtras, slotRequestOf, storeRunStart } from "./run-start.ts";
import {
  notifyWithdrawn,
  removeWaitingRun,
  withdrawnIds,
  markActiveCancelled,
  supersededBy,
  withdrawSuperseded,
  threadWithoutSuperseded,
  withdrawRuns,
  type WithdrawnRuns,
} from "./run-withdrawal.ts";

const CONFLICT =
  "Thread is already running a task. Wait for it to finish or choose a different multitask strategy.";

/**
 * Decides and stores the admission of a run. Everything up to the append happens in one turn of the event loop, so that two requests can
 * never both find the thread idle. `starts`: the queue that begins the run if it starts now.
 */
export function admitRun(
  liveThread: LiveThread,
  draft: RunDraft,
  starts?: RunStartQueue,
): Promise<RunRecord> {
  const { clock, engine } = liveThread.deps;
  const { actor } = liveThread;
  if (actor === undefined || !liveThread.alive) throw threadUnavailable();
  const decision = decideMultitask(
    draft.multitask_strategy,
    threadSituationOf(actor.getSnapshot().value),
    isStoppingAlone(liveThread),
  );
  const { timer } = draft.kwargs;
  if (timer !== undefined && !isPending(liveThread.record, timer))
    throw new ServiceError("run.conflict", "The timer was cancelled, or its event is taken already");
  const now = clock.now();
  const due = draft.delay === undefined ? null : liveThread.owner.delayedRuns.now + Math.ceil(draft.delay);
  const run = newRun(liveThread.record, draft, now, due);

  // A delayed run does not start now, and is not checked against the thread's state, which may differ when it starts.
  const rests = decision.kind === "start" && due === null;
  const ahead = runsBefore(liveThread, decision);
  // Whether the state from which the run will start is known: also while the end of the previous run is being stored, because `active` is
  // null by then.
  const isKnown = due === null && liveThread.record.active === null && ahead.length === 0;
  const { interrupts, checkpoint, rest } = liveThread.record;
  const unfinished = rest === "interrupted" || rest === "error";
  const refusal = engine.refuses(
    run,
    isKnown ? interrupts : null,
    isKnown && checkpoint === null,
    unfinished,
  );
  if (refusal !== null)
    throw new ServiceError(refusal.code, refusal.message, { fields: refusal.fields ?? [] });
  refuseImpossibleEvent(liveThread, run, isKnown);
  // Conflicts are checked last, so that a request that an idle thread would refuse too gets its own error, not a conflict.
  const strategy = effectiveStrategy(decision, draft);
  if (!isKnown && due === null && run.kwargs.event !== true) refuseConflictingResume(liveThread, run, ahead);

  const out = withdrawSuperseded(liveThread, run, draft.multitask_strategy, now);
  if (due !== null) return storeDelayedRun(liveThread, draft, run, decision, out);
  const { once } = draft;
  const beside: AdmissionExtras | null =
    out === null && once === undefined ? null : { ...out, ...(once && { once }) };

  if (rests && liveThread.owner.limiter.tryAcquire(slotRequestOf(liveThread, run))) {
    const thread = withRunConfig(threadAfterAdmission(liveThread.record, run, decision, false), draft.config);
    const start = storeRunStart(
      liveThread,
      out === null ? thread : threadWithoutSuperseded(thread, out),
      run,
      "admitted",
      beside,
    );
    if (out !== null) for (const id of withdrawnIds(out)) removeWaitingRun(liveThread, id);
    actor.send({ type: "RUN.ADMITTED", starts: true, run: run.run_id, strategy });
    return start.stored.then(() => {
      beginStoredAttempt(liveThread, start, starts);
      if (out !== null) notifyWithdrawn(liveThread, out);
      return start.run;
    });
  }

  liveThread.owner.runQueued(liveThread.key, run);
  liveThread.runs.set(run.run_id, run);
  const action = actionOnActiveRun(decision);
  const stopped = action === null ? [] : markActiveCancelled(liveThread, action, supersededBy(run));
  const runs = [run, ...stopped, ...(out?.runs ?? [])];
  const stored = liveThread.write({ ...beside, kind: "admitted", durable: true, runs }, (thread) => {
    const next = withRunConfig(threadAfterAdmission(thread, run, decision, true), draft.config);
    return out === null ? next : threadWithoutSuperseded(next, out);
  });
  if (out !== null) for (const id of withdrawnIds(out)) removeWaitingRun(liveThread, id);
  actor.send({ type: "RUN.ADMITTED", starts: false, run: run.run_id, strategy });
  liveThread.owner.activityChanged(liveThread);
  return stored.then(() => {
    if (out !== null) notifyWithdrawn(liveThread, out);
    if (run.kwargs.event === true) liveThread.attempt?.mailbox.changed();
    return run;
  });
}

/**
 * Refuses the event of a client that the machine accepts in none of its states. If the state in which the machine will take the event is
 * known, the engine has checked the event already.
 * @throws ServiceError `validation.failed`
 */
function refuseImpossibleEvent({ deps: { engine } }: LiveThread, run: RunRecord, isKnown: boolean): void {
  const { graph_id, kwargs } = run;
  if (isKnown || kwargs.event !== true || kwargs.timer !== undefined) return;
  const message = engine.refusesEvent?.(graph_id, graphCommandOf(kwargs)?.resume);
  if (message === undefined) return;
  const fields = [{ at: "command.resume", message }];
  throw new ServiceError("validation.failed", `command.resume ${message}`, { fields });
}

/**
 * The strategy with which the thread's statechart admits a run. A run that has to wait is queued, whatever strategy it
 * has.
 * @throws ServiceError `run.conflict` when the run is refused
 */
function effectiveStrategy(
  decision: MultitaskDecision,
  { multitask_strategy }: Pick<RunDraft, "multitask_strategy">,
): MultitaskStrategy {
  switch (decision.kind) {
    case "refuse":
      throw new ServiceError("run.conflict", CONFLICT);
    case "queue":
      return "enqueue";
    case "start":
    case "supersede":
      return multitask_strategy;
  }
}

/**
 * The runs that a new run follows, given the decision: the run in progress, then the waiting runs. A run in progress that the new run
 * interrupts is included, because the interrupts that it has answered stay answered. If the new run rolls the run in progress back, there
 * are none.
 */
function runsBefore({ record, runs }: LiveThread, decision: MultitaskDecision): readonly RunRecord[] {
  const active = record.active === null ? [] : [record.active];
  const recordsOf = (ids: readonly string[]) => ids.flatMap((id) => runs.get(id) ?? []);
  switch (decision.kind) {
    case "start":
    case "refuse":
    case "queue":
      return recordsOf([...active, ...record.queue]);
    case "supersede":
      return decision.action === "rollback" ? [] : recordsOf(active);
  }
}

/** True when no run has been admitted yet to send the event of the timer. */
function isPending({ timers }: ThreadRecord, timer: Timer): boolean {
  return timers?.some((one) => one.run === null && isSameTimer(one, timer)) ?? false;
}

/** True when the run in progress has been aborted and no other run waits. */
function isStoppingAlone({ record: { active, queue }, runs }: LiveThread): boolean {
  return active !== null && queue.length === 0 && (runs.get(active)?.cancel ?? null) !== null;
}

/**
 * Cancels a run. Resolves when the request is stored. A run that has just ended by itself keeps its end. `reason`: stored
 * as the run's `cancel_reason`.
 */
export async function cancelThreadRun(
  liveThread: LiveThread,
  id: string,
  action: CancelAction,
  reason: string | null,
): Promise<void> {
  const { actor } = liveThread;
  if (actor === undefined || !liveThread.alive) throw threadUnavailable();
  const withdrawn = withdrawWaiting(liveThread, id, action, reason);
  if (withdrawn !== null) return notifyWithdrawn(liveThread, await withdrawn);
  if (liveThread.record.active !== id || !liveThread.runs.has(id)) return;
  const stored = liveThread.write(
    { kind: "cancelled", durable: true, runs: markActiveCancelled(liveThread, action, reason) },
    (thread) => thread,
  );
  actor.send({ type: "RUN.CANCEL", run: id, action });
  await stored;
}

/**
 * Ends a run that is queued or delayed. Returns null if it is neither. Resolves when the end is stored. Does not notify
 * readers and waiting requests; `notifyWithdrawn` does that.
 */
export function withdrawWaiting(
  liveThread: LiveThread,
  id: string,
  action: CancelAction,
  reason: string | null,
): Promise<WithdrawnRuns> | null {
  const waiting =
    liveThread.delayed.get(id) ??
    (liveThread.record.queue.includes(id) ? liveThread.runs.get(id) : undefined);
  if (waiting === undefined) return null;
  const out = withdrawRuns([waiting], action, liveThread.deps.clock.now(), reason);
  const stored = liveThread.write({ kind: "withdrawn", durable: true, ...out }, (thread) =>
    changeThread(thread, {
      queue: thread.queue.filter((queued) => queued !== id),
      delayed: delayedRunsWithout(thread, id),
    }),
  );
  removeWaitingRun(liveThread, id);
  liveThread.actor?.send({ type: "RUN.WITHDRAWN", run: id });
  return stored.then(() => out);
}
