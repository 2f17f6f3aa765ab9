import type { EventChunk } from "../../src/model/run-event.ts";
import type { RunRecord } from "../../src/model/run.ts";
import type { ThreadRecord } from "../../src/model/thread.ts";
import { andThen, type Eventually } from "../../src/ports/eventually.ts";
import { Attempt } from "../run/attempt.ts";
import type { Cell, Change } from "./live-thread.ts";
import { started } from "./record-changes.ts";

/** An attempt that is about to start, with the records to store first. */
export interface Start {
  readonly thread: ThreadRecord;
  readonly run: RunRecord;
  readonly events: EventChunk | undefined;
  readonly attempt: Attempt;
}

/**
 * Prepares an attempt: increments the epoch and the attempt count, and opens its log. The caller stores the result,
 * and only then begins the attempt: so an attempt whose node kills the process is counted.
 */
export function prepare(cell: Cell, thread: ThreadRecord, run: RunRecord, first: number): Start {
  const { clock, boot, sinks } = cell.deps;
  const next = started(thread, run, first, clock.now(), boot);
  const sink = sinks.open(cell.key, next.run, next.thread.epoch, first);
  sink.emit({ t: "start", attempt: next.run.attempt });
  const events = sink.take();
  const attempt = new Attempt(cell, next.run, sink, next.thread.epoch);
  cell.runs.set(run.run_id, next.run);
  cell.attempt = attempt;
  cell.owner.tally.of(run.graph_id).started++;
  return { thread: next.thread, run: next.run, events, attempt };
}

/** Further changes in the append of an admission. */
export type Beside = Partial<Pick<Change, "runs" | "forget" | "outbox" | "once">>;

/** An attempt whose start is being stored. */
interface Launched extends Start {
  readonly stored: Promise<void>;
}

/**
 * Prepares the start of a run that has a slot, and stores it. If the preparation fails, the slot is given back and
 * the thread is unchanged.
 */
export function launch(
  cell: Cell,
  before: ThreadRecord,
  run: RunRecord,
  kind: string,
  beside: Beside | null,
): Launched {
  let start: Start;
  try {
    start = prepare(cell, before, run, 0);
  } catch (cause) {
    cell.owner.gate.leave(run.run_id);
    throw cause;
  }
  const { thread, run: begun, events, attempt } = start;
  cell.owner.rested(cell);
  const change = { kind, durable: true, runs: [begun], events };
  const all = beside === null ? change : { ...beside, ...change, runs: [start.run, ...(beside.runs ?? [])] };
  const stored = cell.write(all, () => thread);
  return { thread, run: begun, events, attempt, stored };
}

/**
 * Begins a run whose start is stored: its first event is published at once, and its nodes start in a later turn.
 * Requests that arrive until then, such as a cancellation, reach the statechart first.
 */
export function begin(cell: Cell, { run, events, attempt }: Start): void {
  if (events !== undefined) attempt.sink.stored(events);
  cell.owner.starts.add(() => {
    if (cell.alive) cell.actor?.send({ type: "RUN.STARTED", run: run.run_id });
  });
}

/** The first event id of a run's next attempt. */
function firstEvent(cell: Cell, run: RunRecord): Eventually<number> {
  if (run.attempt === 0) return 0;
  return andThen(cell.deps.journal.nextEvent(cell.key, run.run_id), (next) =>
    // After another boot of the machine, events that were sent may be missing on disk, because the power failed.
    // Their ids are all below the mark.
    run.boot === cell.deps.boot ? next : Math.max(next, run.event_mark),
  );
}

/** The claim of a run: what the concurrency limiter counts it under. */
export const claimOf = (cell: Cell, { run_id, graph_id }: Pick<RunRecord, "run_id" | "graph_id">) => ({
  run: run_id,
  tenant: cell.key.tenant,
  graph: graph_id,
});

/** Asks for a slot for a waiting run. */
export function askToStart(cell: Cell, id: string): void {
  const run = cell.runs.get(id);
  if (run === undefined) return cell.giveUp(new TypeError(`Run ${id} has no record`));
  cell.owner.gate.ask(claimOf(cell, run), () => cell.actor?.send({ type: "RUN.READY", run: id }));
}

/** Fails the run when its attempts are used up. Its input is stored even so. */
function limit(attempt: Attempt, { run_id, attempt: begun, parked }: RunRecord, attempts: number): void {
  const tries = begun - parked;
  if (tries < attempts) return;
  const error = { error: "Error", message: `Run ${run_id} exceeded max attempts` };
  // The first step runs reducers and edges of the user. If those end the process again and again, the run must end
  // without them.
  if (tries >= 2 * attempts) attempt.fail(error);
  else attempt.giveUp(error);
}

/** Stores the start of a run that waited, or that an earlier attempt has left, and notifies the statechart. */
export function start(cell: Cell, id: string): void {
  const run = cell.runs.get(id);
  if (run === undefined) return cell.giveUp(new TypeError(`Run ${id} has no record`));
  cell.owner.gate.hold(claimOf(cell, run));
  const first = firstEvent(cell, run);
  Promise.resolve(
    andThen(first, (at) => {
      if (!cell.alive) return;
      const prepared = prepare(cell, cell.record, run, at);
      const { thread, run: begun, events, attempt } = prepared;
      cell.owner.begun(id);
      // The run was cancelled before the crash: the statechart learns of it first, so that no node runs.
      if (run.cancel !== null) cell.actor?.send({ type: "RUN.CANCEL", run: id, action: run.cancel });
      else limit(attempt, run, cell.deps.limits.attempts);
      return cell
        .write({ kind: "started", durable: true, runs: [begun], ...(events && { events }) }, () => thread)
        .then(() => begin(cell, prepared));
    }),
  ).catch((cause: unknown) => cell.giveUp(cause));
}
