import type { EventChunk } from "../../src/model/run-event.ts";
import type { RunRecord } from "../../src/model/run.ts";
import type { ThreadRecord } from "../../src/model/thread.ts";
import { andThen, type Eventually } from "../../src/ports/eventually.ts";
import { Attempt } from "../run/attempt.ts";
import type { Cell, Change } from "./live-thread.ts";
import { started } from "./record-changes.ts";

/** An attempt that is about to start, and what has to be stored for it first. */
export interface Start {
  readonly thread: ThreadRecord;
  readonly run: RunRecord;
  readonly events: EventChunk | undefined;
  readonly attempt: Attempt;
}

/**
 * Prepares an attempt: the epoch goes up, the attempt is counted, its log is opened. The caller stores what comes back, and
 * only then lets it begin: a node that kills the process is counted.
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

/** What an admission stores beside its run. */
export type Beside = Partial<Pick<Change, "runs" | "forget" | "outbox" | "once">>;

/** An attempt whose start is on its way to storage. */
interface Launched extends Start {
  readonly stored: Promise<void>;
}

/**
 * Prepares the start of a run that has taken its slot, and stores it. If it cannot be prepared, the slot is free again and the
 * thread as it was.
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
 * The start of a run is stored: its first event is shown at once, and its nodes begin in a later turn. What has been asked of the thread
 * until then, such as the run's end, its chart has heard.
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
    // Another boot: the power may have failed, and with it events that were sent and never reached the disk. Their ids
    // are all below the mark.
    run.boot === cell.deps.boot ? next : Math.max(next, run.event_mark),
  );
}

/** What a run is counted under. */
export const claimOf = (cell: Cell, { run_id, graph_id }: Pick<RunRecord, "run_id" | "graph_id">) => ({
  run: run_id,
  tenant: cell.key.tenant,
  graph: graph_id,
});

/** Asks for a slot for a run that waited. */
export function askToStart(cell: Cell, id: string): void {
  const run = cell.runs.get(id);
  if (run === undefined) return cell.giveUp(new TypeError(`Run ${id} has no record`));
  cell.owner.gate.ask(claimOf(cell, run), () => cell.actor?.send({ type: "RUN.READY", run: id }));
}

/** Gives the run up once its attempts are used up. What it was asked to do is kept all the same. */
function limit(attempt: Attempt, { run_id, attempt: begun, parked }: RunRecord, attempts: number): void {
  const tries = begun - parked;
  if (tries < attempts) return;
  const error = { error: "Error", message: `Run ${run_id} exceeded max attempts` };
  // Its first step has reducers and edges of the user's: when those end the process, it has to come to its end without them.
  if (tries >= 2 * attempts) attempt.fail(error);
  else attempt.giveUp(error);
}

/** Stores the start of a run that waited, or that an earlier attempt has left, and tells the chart. */
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
      // Its end was asked for before the crash: the chart hears of it first, so that no node runs.
      if (run.cancel !== null) cell.actor?.send({ type: "RUN.CANCEL", run: id, action: run.cancel });
      else limit(attempt, run, cell.deps.limits.attempts);
      return cell
        .write({ kind: "started", durable: true, runs: [begun], ...(events && { events }) }, () => thread)
        .then(() => begin(cell, prepared));
    }),
  ).catch((cause: unknown) => cell.giveUp(cause));
}
