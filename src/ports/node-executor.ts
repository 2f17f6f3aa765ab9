import type { NodeCall, TaskOutcome } from "./engine.ts";
import type { StoreOp, StoreResults } from "../model/store-item.ts";
import type { MachineMailbox } from "../model/machine-mailbox.ts";
import type { Fact } from "../model/run-event.ts";

/**
 * The side effects of one attempt of a task: one call of its node function. When the attempt has ended, calls have no
 * effect, or reject.
 */
export interface NodeIo {
  /** Adds a fact to the run's event log. Returns the id of its first event; -1 when the attempt is over. */
  emit(fact: Fact): number;
  /** Stores the result of one `ctx.step` call. Resolves when the result would survive the end of the process. */
  record(step: string, value: unknown): Promise<void>;
  /**
   * Runs operations on the store of the run's tenant. When the attempt is over, calls reject with `journal.fenced` and
   * write nothing. Earlier calls whose writes have not been made by then reject too.
   */
  store<const Ops extends readonly StoreOp[]>(ops: Ops): Promise<StoreResults<Ops>>;
  /**
   * Called when the node function has ended. From then on, calls of the other functions have no effect: for
   * example, further tokens of a message that the node function has begun are dropped.
   */
  end(): void;
  /**
   * Aborts when the node function has to stop: its run was cancelled, superseded or timed out, its task timed out,
   * another task of the step failed, or the attempt is over.
   */
  readonly signal: AbortSignal;
  /**
   * The events of runs that are queued behind the node's run. Present only for a node of the root graph that runs in
   * the server's own thread, not in a worker.
   */
  readonly mailbox?: MachineMailbox | undefined;
}

/**
 * Runs node functions, in this thread or in a worker. `run` MUST resolve, never reject: anything that a node function
 * throws (also `null`) becomes an outcome `failed`. The caller does not wait for a node function that ignores its
 * signal; such a function MUST NOT delay other node functions.
 */
export interface NodeExecutor {
  run(call: NodeCall, io: NodeIo): Promise<TaskOutcome>;
  /** Ends the executor's workers, if it has any. */
  close(): Promise<void>;
}
