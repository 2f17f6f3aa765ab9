import { changeRun, type RunRecord, type TerminalStatus } from "../../src/model/run.ts";
import { outboxItem, type OutboxItem } from "../../src/model/webhook-delivery.ts";
import type { PlainError } from "../../src/model/errors.ts";
import { EMPTY, isObject, type JsonObject } from "../../src/model/json.ts";
import { changeThread, type ThreadRecord } from "../../src/model/thread.ts";
import type { RunDraft } from "../thread-system.ts";
import type { Decision } from "./multitask.ts";

/** Events that an attempt may have before its mark has to be raised in a synced append. */
export const MARK = 65_536;

/** The record of a run that has just been asked for. `due`: it is to wait until then. */
export function newRun(
  thread: ThreadRecord,
  draft: RunDraft,
  now: number,
  due: number | null = null,
): RunRecord {
  // Spelled out: a spread that goes on with new members costs 10 us here.
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
  };
}

/** The thread once a run is admitted: in the queue, its place given by the decision. `waits`: no slot is free for it. */
export function admitted(
  thread: ThreadRecord,
  run: RunRecord,
  decision: Decision,
  waits: boolean,
): ThreadRecord {
  const queue =
    decision.kind === "queue" || (decision.kind === "start" && waits)
      ? [...thread.queue, run.run_id]
      : decision.kind === "supersede"
        ? [run.run_id]
        : thread.queue;
  const { graph_id, assistant_id } = run;
  const before = thread.metadata;
  // The same object where nothing changes: then nothing of it is compared with the index.
  const isSame = before["graph_id"] === graph_id && before["assistant_id"] === assistant_id;
  const metadata = isSame ? before : { ...EMPTY, ...before, graph_id, assistant_id };
  return changeThread(thread, { metadata, queue, next_run: thread.next_run + 1 });
}

/** The thread's config once a run has brought its own: member by member, and so what is `configurable`. */
export function configured(thread: ThreadRecord, config: JsonObject | undefined): ThreadRecord {
  if (config === undefined) return thread;
  const before = thread.config["configurable"];
  const { configurable } = config;
  const both = isObject(before) && isObject(configurable) ? { ...before, ...configurable } : undefined;
  return { ...thread, config: { ...thread.config, ...config, ...(both && { configurable: both }) } };
}

/** The thread and the run once an attempt starts. `first` is the id of the attempt's first event. */
export function started(
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
      event_mark: first + MARK,
      boot,
    }),
  };
}

/** A step is stored: the attempts that got nowhere before it are forgiven, only those count that follow one another. */
export function progressed(run: RunRecord): RunRecord {
  return run.attempt - run.parked > 1 ? changeRun(run, { parked: run.attempt - 1 }) : run;
}

/** A run that has come to its end. `next_event`: how many events it had. */
export function ended(
  run: RunRecord,
  status: TerminalStatus,
  now: number,
  error: PlainError | null = null,
  next_event = run.next_event,
): RunRecord {
  return changeRun(run, { status, error, updated_at: now, ended_at: now, next_event });
}

/** What runs that end without having started owe. A run that is taken back owes nothing: there is none to tell of. */
export function owedBy(runs: readonly RunRecord[]): { readonly outbox?: readonly OutboxItem[] } {
  if (runs.every((run) => run.kwargs.webhook === null)) return {};
  const outbox = runs.flatMap((run) => {
    const { webhook } = run.kwargs;
    return webhook === null ? [] : outboxItem({ run, values: null, waiting: null }, webhook, run.updated_at);
  });
  return { outbox };
}
