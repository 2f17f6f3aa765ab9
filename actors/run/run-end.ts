import type { CheckpointHead, NewCheckpoint, PendingTaskWrites } from "../../src/model/checkpoint.ts";
import { createDelivery } from "../../src/model/webhook-delivery.ts";
import type { JsonObject } from "../../src/model/json.ts";
import type { PlainError } from "../../src/model/errors.ts";
import type { Interrupt, InterruptsByTask } from "../../src/model/interrupt.ts";
import type { StopReason, RunRecord, TerminalStatus } from "../../src/model/run.ts";
import { changeThread, type SettledState, type ThreadRecord } from "../../src/model/thread.ts";
import { timersAtCheckpoint, timersWith } from "../../src/model/machine-timer.ts";
import type { RunEnd } from "../thread-system-interface.ts";
import type { LiveThread } from "../thread/live-thread.ts";
import { endedRun } from "../thread/record-changes.ts";
import {
  endedRunsOfProcessedEvents,
  notifyEndOfProcessedEventRuns,
  removeRunsOfProcessedEvents,
  threadWithoutQueued,
} from "../thread/end-queued-runs-of-processed-events.ts";
import type { RunAttempt } from "./attempt.ts";
import { writesBeforeRun, interruptsOfWrites } from "./writes-restored-by-rollback.ts";
import { timeLimitOf } from "./time-limit.ts";

/** How many event numbers of the thread the end of a run takes: one, for the event `run_done` of thread streams. */
const EVENTS_PER_RUN_END = 1;

interface Verdict {
  readonly status: TerminalStatus;
  readonly rest: SettledState;
  readonly error: PlainError | null;
  readonly interrupts: InterruptsByTask;
  /** The thread's error after the run; null: none. Absent: the error of the run. */
  readonly resting?: PlainError | null;
}

function verdictOf(attempt: RunAttempt, stop: StopReason | null): Verdict {
  if (stop === "timeout") {
    return { status: "timeout", rest: "error", error: timeoutOf(attempt), interrupts: waitingAt(attempt) };
  }
  if (stop !== null) {
    // Interrupts that the run has not answered still wait for an answer.
    const interrupts = waitingAt(attempt);
    const rest = Object.keys(interrupts).length > 0 ? "interrupted" : "idle";
    return { status: "interrupted", rest, error: null, interrupts };
  }
  if (attempt.root.failure !== null) {
    // Interrupts that waited for an answer still wait.
    const interrupts = waitingAt(attempt);
    // If the run failed only because its answer was refused, the thread keeps its status.
    if (attempt.root.isRefused) {
      const { rest, error } = attempt.liveThread.record;
      return { status: "error", rest, error: attempt.root.failure, interrupts, resting: error };
    }
    const waits = !attempt.root.hasFailedTask && Object.keys(interrupts).length > 0;
    return {
      status: "error",
      rest: waits ? "interrupted" : "error",
      error: attempt.root.failure,
      interrupts,
    };
  }
  if (attempt.root.plan?.kind === "paused") {
    return { status: "success", rest: "interrupted", error: null, interrupts: attempt.root.plan.interrupts };
  }
  return { status: "success", rest: "success", error: null, interrupts: {} };
}

function waitingAt({ root, neverReachedStart, liveThread }: RunAttempt): InterruptsByTask {
  return root.isLoaded && !neverReachedStart
    ? interruptsOfWrites(root.writes.values())
    : liveThread.record.interrupts;
}

function timeoutOf({ run, liveThread }: RunAttempt): PlainError {
  const limit = timeLimitOf(run, liveThread.deps.limits);
  return { error: "RunTimeoutError", message: `Run ${run.run_id} took longer than ${limit / 1_000} s` };
}

/**
 * Stores the end of a run in one append: its last step, its final record, and the thread's new status; for a rollback,
 * the deletion of the run.
 */
export function endRun(attempt: RunAttempt, stop: StopReason | null): void {
  if (stop === "rollback") rollBack(attempt);
  else settle(attempt, stop);
}

function settle(attempt: RunAttempt, stop: StopReason | null): void {
  const verdict = verdictOf(attempt, stop);
  if (attempt.root.isLoaded || attempt.run.kwargs.webhook === null)
    return conclude(attempt, verdict, attempt.root.values);
  // The attempt never read the state, but the run's webhook needs it.
  void stateAt(attempt.liveThread).then((values) => conclude(attempt, verdict, values));
}

/** The thread's state; null if it cannot be read: a failed read must not keep a run from ending. */
async function stateAt(liveThread: LiveThread): Promise<JsonObject | null> {
  try {
    return (await liveThread.position()).values;
  } catch {
    return null;
  }
}

/** Writes the end of a run. `values`: the state for the run's webhook, if the run has a webhook. */
function conclude(attempt: RunAttempt, verdict: Verdict, values: JsonObject | null): void {
  const { liveThread, id, sink, neverReachedStart } = attempt;
  const head = neverReachedStart ? null : attempt.root.head;
  const now = liveThread.deps.clock.now();
  if (verdict.error !== null) attempt.pending.emissions.push({ fact: { t: "error", error: verdict.error } });
  const { checkpoints, writes, steps, events, taken } = attempt.takePending(false);
  const ended = endedRunsOfProcessedEvents(liveThread, taken, head?.id);
  const run = endedRun(attempt.withFinalTotals(now), verdict.status, now, verdict.error, sink.next);
  const { webhook } = run.kwargs;
  const webhookItem =
    webhook === null ? undefined : createDelivery({ run, values, waiting: waitingOf(verdict) }, webhook, now);
  liveThread
    .write(
      {
        kind: "settled",
        durable: true,
        runs: [run, ...ended],
        checkpoints,
        writes,
        steps,
        events,
        outbox: webhookItem && [webhookItem],
      },
      (thread) =>
        changeThread(threadWithoutQueued(thread, ended), {
          active: null,
          rest: verdict.rest,
          error: verdict.resting === undefined ? verdict.error : verdict.resting,
          checkpoint: head === null ? thread.checkpoint : head.id,
          timers: timersAfter(attempt, head, thread.timers),
          interrupts: verdict.interrupts,
          next_event: run.seq_base + sink.next + EVENTS_PER_RUN_END,
          // A new interrupt changes the state too, although it is stored with the previous checkpoint. A refused answer
          // adds no interrupt.
          state_updated_at:
            checkpoints.length > 0 || (verdict.rest === "interrupted" && verdict.error === null)
              ? now
              : thread.state_updated_at,
        }),
    )
    .then(
      () => {
        if (attempt.root.isLoaded && !neverReachedStart) {
          liveThread.cachePosition(asStored(attempt.root.head, checkpoints), attempt.root.stored, [
            ...attempt.root.writes.values(),
          ]);
        }
        // The statechart moves on first, then readers end, then waiting requests resolve: a client that learns of the
        // end never finds this run still active.
        finish(attempt, verdict);
        if (events !== undefined) sink.stored(events);
        sink.close();
        liveThread.owner.totals.forGraph(run.graph_id)[verdict.status]++;
        if (verdict.error !== null) logFailedRun(attempt, verdict.error, run);
        liveThread.owner.runEnded(liveThread, id, endOf(attempt, verdict, run), sink.isRead);
        notifyEndOfProcessedEventRuns(liveThread, ended, attempt.root.values);
      },
      // If the write failed, the live thread has failed with it. Recovery continues the run.
      () => undefined,
    );
  removeRunsOfProcessedEvents(liveThread, ended);
}

/**
 * The thread's timers after a run. If the run should have sent the event of a timer, but the machine could not continue from its state,
 * the timer becomes due again. The same check then refuses further runs for it until the graph can continue the machine.
 */
function timersAfter(
  { id, root, run }: RunAttempt,
  head: CheckpointHead | null,
  before: ThreadRecord["timers"],
): ThreadRecord["timers"] {
  const hasFailedAtStart = root.failure?.error === "GraphChangedError" && !root.hasEntered;
  const isUnsent = run.kwargs.timer !== undefined && hasFailedAtStart && head?.run_id !== id;
  const timers = isUnsent ? timersWith(before, (timer) => timer.run === id, null) : before;
  return head === null ? timers : timersAtCheckpoint(head, timers);
}

/**
 * Logs the error of a run, unless it is the error of a node, which was already logged with its stack. A refused answer
 * is only logged as information, because it is the client's error.
 */
function logFailedRun(attempt: RunAttempt, { error, message }: PlainError, run: RunRecord): void {
  if (attempt.isLogged({ error, message })) return;
  const { graph_id: graph, run_id, status } = run;
  const { key, deps } = attempt.liveThread;
  deps.logger[attempt.root.isRefused ? "info" : "warn"]("a run failed", {
    graph,
    run_id,
    thread_id: key.thread,
    attempt: run.attempt,
    status,
    error: `${error}: ${message}`,
  });
}

/**
 * The latest checkpoint with the parent that is stored for it; null if there is no checkpoint. When several steps were
 * stored as one, the parent is the checkpoint before the first of these steps.
 */
function asStored(head: CheckpointHead | null, checkpoints: readonly NewCheckpoint[]): CheckpointHead | null {
  const stored = checkpoints.findLast(({ id }) => id === head?.id);
  if (head === null || stored === undefined || stored.parent === head.parent) return head;
  return { ...head, parent: stored.parent };
}

/** Rolls the run back: deletes it with everything that it stored, and returns the thread to its state before the run. */
function rollBack(attempt: RunAttempt): void {
  const { liveThread, id, sink } = attempt;
  const { seq_base, base_checkpoint, graph_id } = attempt.run;
  // The run's last events are still sent to current readers, but they are not stored.
  const unstored = sink.take();
  const store = async (writes: readonly PendingTaskWrites[]) => {
    const base =
      base_checkpoint === null
        ? null
        : await liveThread.deps.journal.checkpoint(liveThread.key, "", base_checkpoint);
    const now = liveThread.deps.clock.now();
    // The thread's status before the run, with its interrupts or its error, is still in the record: a run
    // in progress does not change it.
    const { rest } = liveThread.record;
    await liveThread.write({ kind: "rolled back", durable: true, forget: [id], writes }, (thread) => ({
      ...thread,
      active: null,
      checkpoint: base_checkpoint,
      // If the run sent the event of a timer, the timer becomes due again.
      timers: timersAtCheckpoint(
        base ?? null,
        timersWith(thread.timers, ({ run }) => run === id, null),
      ),
      // The run's event numbers are not used again: no id may ever name two events.
      next_event: seq_base + sink.next + EVENTS_PER_RUN_END,
      state_updated_at: now,
    }));
    liveThread.forget();
    finish(attempt, { status: "interrupted", rest });
    if (unstored !== undefined) sink.stored(unstored);
    sink.close();
    liveThread.owner.totals.forGraph(graph_id).rolled_back++;
    liveThread.owner.runEnded(liveThread, id, { run: undefined }, sink.isRead);
  };
  attempt.flushed
    .then(() => writesBeforeRun(liveThread, attempt.run))
    .then(store)
    .catch((thrown: unknown) => liveThread.discard(thrown));
}

/**
 * The result for requests that wait for the run's end, with the final state, so that they do not have to read it from
 * the storage.
 */
function endOf(attempt: RunAttempt, verdict: Verdict, run: RunRecord): RunEnd {
  if (!attempt.root.isLoaded) return { run };
  return { run, left: { values: attempt.root.values, waiting: waitingOf(verdict) } };
}

function waitingOf({ rest, interrupts }: Verdict): readonly Interrupt[] | null {
  return rest === "interrupted" ? Object.values(interrupts).flat() : null;
}

function finish(attempt: RunAttempt, { status, rest }: Pick<Verdict, "status" | "rest">): void {
  const { liveThread } = attempt;
  liveThread.runs.delete(attempt.id);
  liveThread.attempt = null;
  attempt.revoke();
  attempt.root.actor?.send({ type: "ENDED", status, rest });
}
