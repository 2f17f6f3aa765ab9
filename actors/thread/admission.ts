import { ServiceError } from "../../src/model/errors.ts";
import type { CancelAction, RunRecord } from "../../src/model/run.ts";
import type { ThreadRecord } from "../../src/model/thread.ts";
import type { RunDraft } from "../port.ts";
import { gone, type Cell } from "./cell.ts";
import { situationOf } from "./chart.ts";
import { decide, stronger } from "./multitask.ts";
import { admitted, configured, newRun, owedBy, withdrawn } from "./record.ts";
import { claimOf, prepare, type Start } from "./starting.ts";

const CONFLICT =
  "Thread is already running a task. Wait for it to finish or choose a different multitask strategy.";

/**
 * Decides and stores an admission. All of it up to the append happens in one turn, so that two requests can never both find
 * the thread at rest; what is decided is in the same append as the run.
 */
export async function admit(cell: Cell, draft: RunDraft): Promise<RunRecord> {
  const { clock, engine } = cell.deps;
  const { actor } = cell;
  if (actor === undefined || !cell.alive) throw gone();
  const decision = decide(draft.multitask_strategy, situationOf(actor.getSnapshot().value));
  if (decision.kind === "refuse") throw new ServiceError("run.conflict", CONFLICT);
  const run = newRun(cell.record, draft, clock.now());
  const told = { type: "RUN.ADMITTED", run: run.run_id, strategy: draft.multitask_strategy } as const;

  const rests = decision.kind === "start";
  const { interrupts, checkpoint } = cell.record;
  const refusal = engine.refuses(run, rests ? interrupts : null, rests && checkpoint === null);
  if (refusal !== null)
    throw new ServiceError(refusal.code, refusal.message, { fields: refusal.fields ?? [] });

  if (rests && cell.owner.gate.enter(claimOf(cell, run))) {
    const start = prepared(cell, configured(admitted(cell.record, run, decision, false), draft.config), run);
    const { thread, run: begun, events, attempt } = start;
    cell.owner.rested(cell);
    const stored = cell.write(
      { kind: "admitted", durable: true, runs: [begun], ...(events && { events }) },
      () => thread,
    );
    actor.send({ starts: true, ...told });
    await stored;
    if (events !== undefined) attempt.sink.stored(events);
    actor.send({ type: "RUN.STARTED", run: run.run_id });
    return begun;
  }

  cell.owner.queued(run.run_id);
  cell.runs.set(run.run_id, run);
  cell.deps.sinks.expect(cell.key, run.run_id);
  const runs: RunRecord[] = [run];
  const forget: string[] = [];
  let owed: ReturnType<typeof owedBy> = {};
  if (decision.kind === "supersede") {
    const waiting = cell.record.queue.flatMap((id) => cell.runs.get(id) ?? []);
    const out = withdrawn(waiting, decision.action, clock.now());
    owed = owedBy(out.runs);
    runs.push(...out.runs);
    forget.push(...out.forget);
    if (decision.active) runs.push(...markActive(cell, decision.action));
  }
  const stored = cell.write({ kind: "admitted", durable: true, runs, forget, ...owed }, (thread) =>
    configured(admitted(thread, run, decision, true), draft.config),
  );
  for (const id of withdrawnIds(runs, forget, run.run_id)) drop(cell, id);
  actor.send({ starts: false, ...told });
  cell.owner.rested(cell);
  await stored;
  dismiss(cell, runs, forget, run.run_id);
  return run;
}

/** Prepares the start of a run that has taken its slot. If it cannot be, the slot is free again, and the thread as it was. */
function prepared(cell: Cell, thread: ThreadRecord, run: RunRecord): Start {
  try {
    return prepare(cell, thread, run, 0);
  } catch (cause) {
    cell.owner.gate.leave(run.run_id);
    throw cause;
  }
}

/** The active run's end is asked for: noted in its record, so that a crash cannot forget it. */
function markActive(cell: Cell, action: CancelAction): RunRecord[] {
  const active = cell.record.active === null ? undefined : cell.runs.get(cell.record.active);
  if (active === undefined) return [];
  const marked = { ...active, cancel: stronger(active.cancel, action) };
  cell.runs.set(active.run_id, marked);
  return [marked];
}

/** It is not to start any more. */
function drop(cell: Cell, id: string): void {
  cell.runs.delete(id);
  cell.owner.gate.leave(id);
}

function withdrawnIds(runs: readonly RunRecord[], forget: readonly string[], admittedRun: string): string[] {
  const ended = runs.filter((run) => run.run_id !== admittedRun && run.ended_at !== null);
  return [...ended.map(({ run_id }) => run_id), ...forget];
}

function dismiss(
  cell: Cell,
  runs: readonly RunRecord[],
  forget: readonly string[],
  keep: string | null,
): void {
  for (const id of withdrawnIds(runs, forget, keep ?? "")) {
    cell.deps.sinks.dismiss(cell.key, id);
    cell.owner.concluded(cell, id, { run: runs.find(({ run_id }) => run_id === id) });
  }
}

/** Asks for a run's end. Resolves once the wish is stored; a run that has come to its own end keeps it. */
export async function cancel(cell: Cell, id: string, action: CancelAction): Promise<void> {
  const { actor } = cell;
  const run = cell.runs.get(id);
  if (actor === undefined || !cell.alive) throw gone();
  if (run === undefined) return;
  if (cell.record.queue.includes(id)) {
    const { runs, forget } = withdrawn([run], action, cell.deps.clock.now());
    const change = { kind: "withdrawn", durable: true, runs, forget, ...owedBy(runs) };
    const stored = cell.write(change, (thread) => ({
      ...thread,
      queue: thread.queue.filter((waiting) => waiting !== id),
    }));
    drop(cell, id);
    actor.send({ type: "RUN.WITHDRAWN", run: id });
    await stored;
    dismiss(cell, runs, forget, null);
    return;
  }
  if (cell.record.active !== id) return;
  const stored = cell.write(
    { kind: "cancelled", durable: true, runs: markActive(cell, action) },
    (thread) => thread,
  );
  actor.send({ type: "RUN.CANCEL", run: id, action });
  await stored;
}
