import type { NodeCall, TaskOutcome } from "./engine.ts";
import type { StoreOp, StoreResults } from "../model/store-item.ts";
import type { MachineMailbox } from "../model/machine-mailbox.ts";
import type { Fact } from "../model/run-event.ts";

/**
 * The side effects of one attempt of a running node function. When the attempt has ended, calls have no
 * effect.
 */
export interface NodeIo {
  /** Adds a fact to the run's event log. Returns the id of its first event; -1 when the attempt is over. */
  emit(fact: Fact): number;
  /** Stores the result of one `ctx.step` call. Resolves when the result would survive the end of the process. */
  record(step: string, value: unknown): Promise<void>;
  /**
   * Operations on the store of the run's tenant. When the attempt is over, it rejects with `journal.fenced` and writes nothing,
   * not even operations that were called before.
   */
  store<const Ops extends readonly StoreOp[]>(ops: Ops): Promise<StoreResults<Ops>>;
  /**
   * Called when the node function has ended. From then on, calls of the other functions have no effect: for
   * example, further tokens of a message that the node function has begun are dropped.
   */
  end(): void;
  /** Aborts when the run is cancelled, superseded or timed out. */
  readonly signal: AbortSignal;
  /** The events of runs that are queued behind this one. Only for a node of the root graph that runs in this thread. */
  readonly mailbox?: MachineMailbox | undefined;
}

/**
 * Runs node functions, in this thread or in a worker. `run` MUST resolve, never reject: anything that a node function
 * throws (also `null`) becomes `failed`. A node function that ignores its signal MUST NOT delay others: the caller
 * stops waiting.
 */
export interface NodeExecutor {
  run(call: NodeCall, io: NodeIo): Promise<TaskOutcome>;
  /** Ends the executor's workers. */
  close(): Promise<void>;
}
