import { changeRun, type RunRecord, type TerminalStatus } from "../../src/model/run.ts";
import { createDelivery, type NewDelivery } from "../../src/model/webhook-delivery.ts";
import type { PlainError } from "../../src/model/errors.ts";
import { EMPTY_OBJECT, isObject, type JsonObject } from "../../src/model/json.ts";
import { changeThread, type ThreadRecord } from "../../src/model/thread.ts";
import { isSameTimer, timersWith } from "../../src/model/machine-timer.ts";
import type { RunDraft } from "../thread-system-interface.ts";
import type { MultitaskDecision } from "./multitask.ts";

/**
 * How far the event mark (`RunRecord.event_mark`, a number above all event ids of an attempt) is set above the next
 * event id. Before the ids reach the mark, a higher mark is synced to disk, so that no id is used twice after a power
 * cut.
 */
export const EVENT_MARK_STEP = 65_536;

/** The record of a new run. `due`: for a delayed run, the epoch milliseconds at which it may start. */
export function newRun(
  thread: ThreadRecord,
  draft: RunDraft,
  now: number,
  due: number | null = null,
): RunRecord {
  // The members are listed one by one, because a spread followed by new members would take 10 us of CPU time for each
  // run.
  return {
    run_id: draft.run_id,
    thread_id: thread.thread_id,
    assistant_id: draft.assistant_id,
    graph_id: draft.graph_id,
    created_at: now,
    updated_at: now,
    metadata: draft.metadata,
    status: "pending",
    kwargs: draft.kwargs,
    multitask_strategy: draft.multitask_strategy,
    order: thread.next_run,
    attempt: 0,
    parked: 0,
    cancel: null,
    started_at: null,
    ended_at: null,
    error: null,
    seq_base: 0,
    next_event: 0,
    event_mark: 0,
    boot: null,
    base_checkpoint: null,
    base_writes: null,
    due,
    cancel_reason: null,
    origin: draft.origin,
    usage: null,
    slowest_node: null,
  };
}

/**
 * The thread's record after a run was admitted. The decision says where the run goes in the queue. `waits`: the run does
 * not start now.
 */
export function threadAfterAdmission(
  thread: ThreadRecord,
  run: RunRecord,
  decision: MultitaskDecision,
  waits: boolean,
): ThreadRecord {
  const queue = queueAfter(thread, run, decision, waits);
  const { graph_id, assistant_id } = run;
  const before = thread.metadata;
  // The metadata stays the same object if nothing changes, so that the index need not compare its members.
  const isSame = before["graph_id"] === graph_id && before["assistant_id"] === assistant_id;
  const metadata = isSame ? before : { ...EMPTY_OBJECT, ...before, graph_id, assistant_id };
  const { timer } = run.kwargs;
  const timers =
    timer === undefined
      ? thread.timers
      : timersWith(thread.timers, (one) => isSameTimer(one, timer), run.run_id);
  return changeThread(thread, { metadata, queue, next_run: thread.next_run + 1, timers });
}

function queueAfter(
  { queue }: ThreadRecord,
  { run_id }: RunRecord,
  { kind }: MultitaskDecision,
  waits: boolean,
): readonly string[] {
  switch (kind) {
    case "start":
      return waits ? [...queue, run_id] : queue;
    case "queue":
      return [...queue, run_id];
    case "supersede":
      return [run_id];
    case "refuse":
      return queue;
  }
}

/** The thread with a run's config merged into its own, member by member; the members of `configurable` are merged too. */
export function withRunConfig(thread: ThreadRecord, config: JsonObject | undefined): ThreadRecord {
  if (config === undefined) return thread;
  const before = thread.config["configurable"];
  const { configurable } = config;
  const both = isObject(before) && isObject(configurable) ? { ...before, ...configurable } : undefined;
  return { ...thread, config: { ...thread.config, ...config, ...(both && { configurable: both }) } };
}

/** The records of the thread and the run when an attempt starts. `first`: the id of the attempt's first event. */
export function recordsAfterStart(
  thread: ThreadRecord,
  run: RunRecord,
  first: number,
  now: number,
  boot: string,
): { readonly thread: ThreadRecord; readonly run: RunRecord } {
  const again = run.attempt > 0;
  return {
    thread: changeThread(thread, {
      epoch: thread.epoch + 1,
      active: run.run_id,
      queue: thread.queue.length === 0 ? thread.queue : thread.queue.filter((id) => id !== run.run_id),
    }),
    run: changeRun(run, {
      updated_at: now,
      attempt: run.attempt + 1,
      started_at: run.started_at ?? now,
      seq_base: again ? run.seq_base : thread.next_event,
      base_checkpoint: again ? run.base_checkpoint : thread.checkpoint,
      event_mark: first + EVENT_MARK_STEP,
      boot,
    }),
  };
}

/**
 * The run's record after a step was stored. The earlier attempts no longer count against the limit of attempts, because
 * the limit is for attempts in a row without a stored step.
 */
export function runAfterProgress(run: RunRecord): RunRecord {
  return run.attempt - run.parked > 1 ? changeRun(run, { parked: run.attempt - 1 }) : run;
}

/** The record of a run that has ended. `next_event`: the number of its events. */
export function endedRun(
  run: RunRecord,
  status: TerminalStatus,
  now: number,
  error: PlainError | null = null,
  next_event = run.next_event,
): RunRecord {
  return changeRun(run, { status, error, updated_at: now, ended_at: now, next_event });
}

/**
 * The webhook deliveries of runs that end without a known state: before they have started, or because their end was
 * lost. MUST NOT be called for runs that are rolled back, which have no deliveries.
 */
export function makeDeliveriesWithoutState(runs: readonly RunRecord[]): {
  readonly outbox?: readonly NewDelivery[];
} {
  if (runs.every((run) => run.kwargs.webhook === null)) return {};
  const outbox = runs.flatMap((run) => {
    const { webhook } = run.kwargs;
    return webhook === null
      ? []
      : createDelivery({ run, values: null, waiting: null }, webhook, run.updated_at);
  });
  return { outbox };
}
