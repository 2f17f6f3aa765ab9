import { memorySizeOf } from "../../src/model/memory-size.ts";
import type { EventChunk } from "../../src/model/run-event.ts";
import type { RunRecord } from "../../src/model/run.ts";
import type { ThreadRecord } from "../../src/model/thread.ts";
import { andThen, type Eventually } from "../../src/ports/eventually.ts";
import { RunAttempt } from "../run/attempt.ts";
import type { RunStartQueue } from "../begin-queue.ts";
import type { LiveThread, AppendWithoutThread } from "./live-thread.ts";
import { recordsAfterStart } from "./record-changes.ts";

/** An attempt that is about to start, with the records that have to be stored first. */
export interface AttemptStart {
  readonly thread: ThreadRecord;
  readonly run: RunRecord;
  readonly events: EventChunk | undefined;
  readonly attempt: RunAttempt;
}

/**
 * Prepares an attempt: increments the thread's epoch and the run's attempt count, and opens the run's event log. The
 * caller stores the result before it begins the attempt, so that an attempt whose node kills the process is counted.
 */
export function prepareAttempt(
  liveThread: LiveThread,
  thread: ThreadRecord,
  run: RunRecord,
  first: number,
): AttemptStart {
  const { clock, boot, engine, sinks } = liveThread.deps;
  const next = recordsAfterStart(thread, run, first, clock.now(), boot);
  const sink = sinks.open(liveThread.key, next.run, next.thread.epoch, first);
  const { attempt: number } = next.run;
  const recordsEvents = engine.recordsEvents?.(next.run) ?? false;
  sink.emit(recordsEvents ? { t: "start", attempt: number, events: true } : { t: "start", attempt: number });
  const events = sink.take();
  const attempt = new RunAttempt(liveThread, next.run, sink, next.thread.epoch);
  liveThread.runs.set(run.run_id, next.run);
  liveThread.attempt = attempt;
  const { totals } = liveThread.owner;
  totals.forGraph(run.graph_id).started++;
  if (number === 1) totals.waits.add(next.run.updated_at - Math.max(run.created_at, run.due ?? 0));
  return { thread: next.thread, run: next.run, events, attempt };
}

/** Changes that are stored in the append of an admission, in addition to the thread and the new run. */
export type AdmissionExtras = Partial<Pick<AppendWithoutThread, "runs" | "forget" | "outbox" | "once">>;

/** An attempt whose start is being stored. */
interface Launched extends AttemptStart {
  readonly stored: Promise<void>;
}

/**
 * Prepares the start of a run that has a slot, and stores it. If the preparation fails, the slot is released and the
 * thread does not change.
 */
export function storeRunStart(
  liveThread: LiveThread,
  before: ThreadRecord,
  run: RunRecord,
  kind: string,
  beside: AdmissionExtras | null,
): Launched {
  let prepared: AttemptStart;
  try {
    prepared = prepareAttempt(liveThread, before, run, 0);
  } catch (cause) {
    liveThread.owner.limiter.release(run.run_id);
    throw cause;
  }
  const { thread, run: begun, events, attempt } = prepared;
  liveThread.owner.activityChanged(liveThread);
  const change = { kind, durable: true, runs: [begun], events };
  const all =
    beside === null ? change : { ...beside, ...change, runs: [prepared.run, ...(beside.runs ?? [])] };
  const stored = liveThread.write(all, () => thread);
  return { thread, run: begun, events, attempt, stored };
}

/**
 * Begins a run whose start is stored: publishes its first event, and adds the run to `starts` (by default, the queue of
 * all runs). The nodes start in a later turn of the event loop, so that a cancellation that arrives in between reaches
 * the statechart first.
 */
export function beginStoredAttempt(
  liveThread: LiveThread,
  { run, events, attempt }: AttemptStart,
  starts: RunStartQueue = liveThread.owner.starts,
): void {
  if (events !== undefined) attempt.sink.stored(events);
  starts.add(() => {
    if (liveThread.alive) liveThread.actor?.send({ type: "RUN.STARTED", run: run.run_id });
  });
}

/** The first event id of a run's next attempt. */
function firstEvent(liveThread: LiveThread, run: RunRecord): Eventually<number> {
  if (run.attempt === 0) return 0;
  return andThen(liveThread.deps.journal.nextEvent(liveThread.key, run.run_id), (next) =>
    // If the computer has booted again since the last attempt, the power may have failed, and events that were sent may
    // be missing on disk. The ids of these events are below the mark, so the new ids start at the mark.
    run.boot === liveThread.deps.boot ? next : Math.max(next, run.event_mark),
  );
}

/** The bytes in memory of the arguments with which a run was created. */
export const runKwargsBytes = ({ kwargs }: RunRecord): number => memorySizeOf(kwargs, Infinity);

export const slotRequestOf = (liveThread: LiveThread, run: RunRecord) => ({
  run: run.run_id,
  tenant: liveThread.key.tenant,
  graph: run.graph_id,
  bytes: {
    state: liveThread.record.state_bytes ?? 0,
    // The input of a queued run is not measured again: it was measured when the run was queued.
    input: liveThread.owner.queuedInputBytes(run.run_id) ?? runKwargsBytes(run),
  },
});

/** Asks for a slot for a waiting run. */
export function requestSlot(liveThread: LiveThread, id: string): void {
  const run = liveThread.runs.get(id);
  if (run === undefined) return liveThread.discard(new TypeError(`Run ${id} has no record`));
  liveThread.owner.limiter.acquire(slotRequestOf(liveThread, run), () =>
    liveThread.actor?.send({ type: "RUN.READY", run: id }),
  );
  // The run may have to wait long, so a large state is dropped from memory. It is read again when the run starts.
  if (liveThread.owner.limiter.isWaiting(id)) liveThread.dropLargeState();
}

/**
 * Fails a run that has used up its attempts. The run's input is still applied and stored, unless the process has also
 * ended too often while applying it.
 */
function limitAttempts(
  attempt: RunAttempt,
  { run_id, attempt: begun, parked }: RunRecord,
  attempts: number,
): void {
  const tries = begun - parked;
  if (tries < attempts) return;
  const ended = tries === 1 ? "1 attempt" : `${tries} attempts in a row`;
  const why =
    "the server ended (killed, out of memory, or process.exit in a node), or the step could not be stored";
  // The message begins with the words of LangGraph's own server, because clients may look for them.
  const message = `Run ${run_id} exceeded max attempts (runs.max_attempts): ${ended} ended before a step was stored: ${why}; the server's log says which`;
  const error = { error: "Error", message };
  // The first step runs the user's reducers and edges. If these have crashed the process again and again, the run has to
  // end without running them.
  if (tries >= 2 * attempts) attempt.root.fail(error);
  else attempt.root.failAfterFirstStep(error);
}

/** Stores the start of a run that waited, or that an earlier process left unfinished, and notifies the statechart. */
export function startPendingRun(liveThread: LiveThread, id: string): void {
  const run = liveThread.runs.get(id);
  if (run === undefined) return liveThread.discard(new TypeError(`Run ${id} has no record`));
  liveThread.owner.limiter.forceAcquire(slotRequestOf(liveThread, run));
  const first = firstEvent(liveThread, run);
  Promise.resolve(
    andThen(first, (at) => {
      if (!liveThread.alive) return;
      const prepared = prepareAttempt(liveThread, liveThread.record, run, at);
      const { thread, run: begun, events, attempt } = prepared;
      liveThread.owner.runStarted(id);
      // If an earlier process has stored a cancellation of the run, the statechart gets the cancellation
      // first, so that no node runs.
      if (run.cancel !== null) liveThread.actor?.send({ type: "RUN.CANCEL", run: id, action: run.cancel });
      else limitAttempts(attempt, run, liveThread.deps.limits.attempts);
      return liveThread
        .write({ kind: "started", durable: true, runs: [begun], ...(events && { events }) }, () => thread)
        .then(() => beginStoredAttempt(liveThread, prepared));
    }),
  ).catch((cause: unknown) => liveThread.discard(cause));
}
