import type { NodeCall, TaskOutcome } from "./engine.ts";
import type { StoreOp, StoreResults } from "../model/store-item.ts";
import type { Fact } from "../model/run-event.ts";

/** What a running node body may do to the world. Dead once its attempt has ended: calls then do nothing. */
export interface NodeIo {
  /** Adds a fact to the run's log; returns its first event's id, -1 when the attempt is over. */
  emit(fact: Fact): number;
  /** Stores one `ctx.step` record; resolves once it would survive the end of the process. */
  record(step: string, value: unknown): Promise<void>;
  /**
   * The store, as the run's tenant. Rejects with `journal.fenced` once the attempt is over, and makes no write then, also of
   * those that were on their way to it.
   */
  store<const Ops extends readonly StoreOp[]>(ops: Ops): Promise<StoreResults<Ops>>;
  /** Aborts when the run is cancelled, superseded or timed out. */
  readonly signal: AbortSignal;
}

/**
 * Runs node bodies: in this thread, or in a worker. MUST resolve, never reject: whatever a body throws (also `null`)
 * becomes `failed`. A body that ignores its signal MUST NOT hold anyone up: the caller stops waiting.
 */
export interface Host {
  run(call: NodeCall, io: NodeIo): Promise<TaskOutcome>;
  /** Ends what it holds (workers). */
  close(): Promise<void>;
}
