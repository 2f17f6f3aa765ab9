import { ServiceError } from "../../src/model/errors.ts";
import type { CancelAction, RunRecord } from "../../src/model/run.ts";
import { changeThread } from "../../src/model/thread.ts";
import type { RunDraft } from "../thread-system.ts";
import { refuseConflictingResume } from "./resume-conflicts.ts";
import { gone, type Cell } from "./live-thread.ts";
import { situationOf } from "./thread-chart.ts";
import { delay, undelayed } from "./thread-delays.ts";
import { decide, type Decision } from "./multitask.ts";
import { admitted, configured, newRun } from "./record-changes.ts";
import { begin, type Beside, claimOf, launch } from "./run-start.ts";
import { dismiss, drop, idsOf, markActive, superseded, withdraw, type Withdrawn } from "./run-withdrawal.ts";

const CONFLICT =
  "Thread is already running a task. Wait for it to finish or choose a different multitask strategy.";

/**
 * Decides and stores the admission of a run. Everything up to the append happens in one turn, so that two requests
 * can never both find the thread idle; the append holds the run and all that was decided with it.
 */
export function admit(cell: Cell, draft: RunDraft): Promise<RunRecord> {
  const { clock, engine } = cell.deps;
  const { actor } = cell;
  if (actor === undefined || !cell.alive) throw gone();
  const decision = decide(draft.multitask_strategy, situationOf(actor.getSnapshot().value), isLeft(cell));
  if (decision.kind === "refuse") throw new ServiceError("run.conflict", CONFLICT);
  const now = clock.now();
  const due = draft.delay === undefined ? null : cell.owner.delays.now + Math.ceil(draft.delay);
  const run = newRun(cell.record, draft, now, due);

  // The state of the thread when a delayed run starts is not known yet.
  const rests = decision.kind === "start" && due === null;
  const ahead = comingBefore(cell, decision);
  // While the end of a run is being stored, everything that the next run will find is known.
  const isKnown = due === null && cell.record.active === null && ahead.length === 0;
  const { interrupts, checkpoint, rest } = cell.record;
  const unfinished = rest === "interrupted" || rest === "error";
  const refusal = engine.refuses(
    run,
    isKnown ? interrupts : null,
    isKnown && checkpoint === null,
    unfinished,
  );
  if (refusal !== null)
    throw new ServiceError(refusal.code, refusal.message, { fields: refusal.fields ?? [] });
  if (!isKnown && due === null) refuseConflictingResume(cell, run, ahead);

  const out = superseded(cell, draft.multitask_strategy, now);
  if (due !== null) return delay(cell, draft, run, decision, out);
  // A run that waits is queued, whatever its strategy.
  const strategy = decision.kind === "queue" ? "enqueue" : draft.multitask_strategy;
  const { once } = draft;
  const beside: Beside | null = out === null && once === undefined ? null : { ...out, ...(once && { once }) };

  if (rests && cell.owner.gate.enter(claimOf(cell, run))) {
    const thread = configured(admitted(cell.record, run, decision, false), draft.config);
    const start = launch(
      cell,
      out === null ? thread : changeThread(thread, { delayed: null }),
      run,
      "admitted",
      beside,
    );
    if (out !== null) for (const id of idsOf(out)) drop(cell, id);
    actor.send({ type: "RUN.ADMITTED", starts: true, run: run.run_id, strategy });
    return start.stored.then(() => {
      begin(cell, start);
      if (out !== null) dismiss(cell, out);
      return start.run;
    });
  }

  cell.owner.queued(cell.key, run.run_id);
  cell.runs.set(run.run_id, run);
  const stopped = decision.kind === "supersede" && decision.active ? markActive(cell, decision.action) : [];
  const runs = [run, ...stopped, ...(out?.runs ?? [])];
  const stored = cell.write({ ...beside, kind: "admitted", durable: true, runs }, (thread) => {
    const next = configured(admitted(thread, run, decision, true), draft.config);
    return out === null ? next : changeThread(next, { delayed: null });
  });
  if (out !== null) for (const id of idsOf(out)) drop(cell, id);
  actor.send({ type: "RUN.ADMITTED", starts: false, run: run.run_id, strategy });
  cell.owner.rested(cell);
  return stored.then(() => {
    if (out !== null) dismiss(cell, out);
    return run;
  });
}

/**
 * The runs before a new one of which this was decided: the one in progress, then those that wait. A run that is
 * interrupted keeps the answer that it has taken; a run that is rolled back leaves nothing.
 */
function comingBefore({ record, runs }: Cell, decision: Decision): readonly RunRecord[] {
  const isAlone = decision.kind === "supersede";
  if (isAlone && decision.action === "rollback") return [];
  const waiting = isAlone ? [] : record.queue;
  const ids = record.active === null ? waiting : [record.active, ...waiting];
  return ids.flatMap((id) => runs.get(id) ?? []);
}

/** True when the run in progress has been told to stop and no other waits. */
function isLeft({ record: { active, queue }, runs }: Cell): boolean {
  return active !== null && queue.length === 0 && (runs.get(active)?.cancel ?? null) !== null;
}

/**
 * Cancels a run. Resolves when the request is stored; a run that has just ended by itself keeps its end. `reason`:
 * the caller's words.
 */
export async function cancel(
  cell: Cell,
  id: string,
  action: CancelAction,
  reason: string | null,
): Promise<void> {
  const { actor } = cell;
  if (actor === undefined || !cell.alive) throw gone();
  const withdrawn = withdrawWaiting(cell, id, action, reason);
  if (withdrawn !== null) return dismiss(cell, await withdrawn);
  if (cell.record.active !== id || !cell.runs.has(id)) return;
  const stored = cell.write(
    { kind: "cancelled", durable: true, runs: markActive(cell, action, reason) },
    (thread) => thread,
  );
  actor.send({ type: "RUN.CANCEL", run: id, action });
  await stored;
}

/**
 * Ends a run that waits in the queue or for its time; null: it does not wait. Resolves when that is stored. Readers and
 * waiting requests are not notified: that is `dismiss`.
 */
export function withdrawWaiting(
  cell: Cell,
  id: string,
  action: CancelAction,
  reason: string | null,
): Promise<Withdrawn> | null {
  const waiting = cell.delayed.get(id) ?? (cell.record.queue.includes(id) ? cell.runs.get(id) : undefined);
  if (waiting === undefined) return null;
  const out = withdraw([waiting], action, cell.deps.clock.now(), reason);
  const stored = cell.write({ kind: "withdrawn", durable: true, ...out }, (thread) =>
    changeThread(thread, {
      queue: thread.queue.filter((queued) => queued !== id),
      delayed: undelayed(thread, id),
    }),
  );
  drop(cell, id);
  cell.actor?.send({ type: "RUN.WITHDRAWN", run: id });
  return stored.then(() => out);
}
