import { ServiceError } from "../../src/model/errors.ts";
import type { RunRecord } from "../../src/model/run.ts";
import type { ThreadRecord } from "../../src/model/thread.ts";
import type { RunDraft } from "../thread-system.ts";
import { gone, type Cell } from "./live-thread.ts";
import { situationOf } from "./thread-chart.ts";
import type { Decision } from "./multitask.ts";
import { admitted, configured } from "./record-changes.ts";
import { begin, claimOf, launch } from "./run-start.ts";
import { dismiss, drop, idsOf, markActive, type Withdrawn } from "./run-withdrawal.ts";

/** Runs: how many delayed runs a thread may have. Its record names them all. */
const MOST = 1_000;

/**
 * Runs: a thread with at most this many delayed runs is removed from memory, since they are cheap to read again; with
 * more it stays until its idle time is over.
 */
const FEW_TO_READ = 16;

/** The thread's delayed runs without one of them. */
export function undelayed(thread: ThreadRecord, id: string): ThreadRecord["delayed"] {
  const rest = thread.delayed?.filter(({ run }) => run !== id) ?? [];
  return rest.length === 0 ? null : rest;
}

/**
 * Stores a run that starts later. Its multitask strategy applies now: the runs that it supersedes end at once. After
 * that the thread is as free as before.
 */
export async function delay(
  cell: Cell,
  draft: RunDraft,
  run: RunRecord,
  decision: Decision,
  out: Withdrawn | null,
): Promise<RunRecord> {
  const { actor } = cell;
  const { run_id: id } = run;
  const due = run.due ?? 0;
  if (cell.delayed.size >= MOST) {
    throw new ServiceError("server.busy", `${MOST} delayed runs of this thread are waiting already`);
  }
  const stopped = decision.kind === "supersede" && decision.active ? markActive(cell, decision.action) : [];
  const waiting = cell.record.queue;
  cell.delayed.set(id, run);
  const change = {
    kind: "admitted",
    durable: true,
    ...out,
    runs: [run, ...stopped, ...(out?.runs ?? [])],
    ...(draft.once && { once: draft.once }),
  };
  const stored = cell.write(change, (thread) => ({
    ...configured(admitted(thread, run, { kind: "start" }, false), draft.config),
    queue: out === null ? thread.queue : [],
    delayed: [...((out === null ? thread.delayed : null) ?? []), { run: id, due }],
  }));
  if (out !== null) {
    for (const gone of idsOf(out)) drop(cell, gone);
    // From the last run on: none of them may become the next.
    for (const run of waiting.toReversed()) actor?.send({ type: "RUN.WITHDRAWN", run });
  }
  if (decision.kind === "supersede") {
    for (const { run_id } of stopped)
      actor?.send({ type: "RUN.CANCEL", run: run_id, action: decision.action });
  }
  cell.owner.rested(cell);
  await stored;
  // Only now that it is stored: due runs are looked up in the storage.
  cell.owner.delays.expect(due);
  if (out !== null) dismiss(cell, out);
  // The input is read again when the run is due: ten inputs of 4 MB held 170 MB of heap until the idle time was over.
  if (cell.delayed.size <= FEW_TO_READ) cell.owner.passivate(cell);
  return run;
}

/** Handles a delayed run that is due: it starts, or waits behind all others. */
export async function ripen(cell: Cell, id: string): Promise<void> {
  const { actor } = cell;
  if (actor === undefined || !cell.alive) throw gone();
  const run = cell.delayed.get(id);
  // It was cancelled meanwhile. Until that is stored, the run is found due again and again.
  if (run === undefined) return cell.tail;
  const told = { type: "RUN.ADMITTED", run: id, strategy: "enqueue" } as const;
  const delayed = undelayed(cell.record, id);
  if (situationOf(actor.getSnapshot().value) === "resting" && cell.owner.gate.enter(claimOf(cell, run))) {
    const start = launch(cell, { ...cell.record, delayed }, run, "ripened", null);
    cell.delayed.delete(id);
    actor.send({ ...told, starts: true });
    await start.stored;
    return begin(cell, start);
  }
  cell.owner.queued(cell.key, id, true);
  cell.delayed.delete(id);
  cell.runs.set(id, run);
  const stored = cell.write({ kind: "ripened", durable: true }, (thread) => ({
    ...thread,
    delayed,
    queue: [...thread.queue, id],
  }));
  actor.send({ ...told, starts: false });
  cell.owner.rested(cell);
  await stored;
}
