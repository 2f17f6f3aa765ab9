import type { ErrorCode, PlainError } from "../model/errors.ts";
import type { Fact } from "../model/run-event.ts";
import type { StoreOp } from "../model/store-item.ts";
import type { JsonObject } from "../model/json.ts";
import type { NodeCall, TaskOutcome } from "../ports/engine.ts";
import type { LogLevel } from "../ports/logger.ts";

/**
 * Messages from the server's thread to a worker. `id` identifies a call of a node function; the server numbers the calls of each worker.
 */
export type ToWorker =
  /** The first message. The worker stores the id of the call that it began last in this shared memory. */
  | { readonly t: "begun"; readonly begun: Int32Array }
  | { readonly t: "call"; readonly id: number; readonly call: NodeCall }
  /** Aborts the signal of a call with a DOMException that has this name and message. */
  | { readonly t: "abort"; readonly id: number; readonly name: string; readonly message: string }
  /** The answer to a `record` or `store` request of a call: its result or its error. `ask`: the number of the request. */
  | {
      readonly t: "answer";
      readonly id: number;
      readonly ask: number;
      readonly value?: unknown;
      /** `code`: the code of a `ServiceError`. */
      readonly error?: PlainError & { readonly code?: ErrorCode };
    }
  /** Requests a `pong` message. A worker that does not answer is blocked by a node function. */
  | { readonly t: "ping" };

/** Messages from a worker to the server's thread. They are posted in lists, usually one list for each turn of the event loop. */
export type FromWorker =
  /** The graphs are loaded. */
  | { readonly t: "ready" }
  /** The graphs could not be loaded. */
  | { readonly t: "refused"; readonly error: PlainError }
  /**
   * An entry for the run's event log. A token or piece names its chat message by the message's number in the call, from 0, because the
   * worker does not know the event ids that the server assigns.
   */
  | { readonly t: "fact"; readonly id: number; readonly fact: Fact }
  | {
      readonly t: "record";
      readonly id: number;
      readonly ask: number;
      readonly step: string;
      readonly value: unknown;
    }
  | { readonly t: "store"; readonly id: number; readonly ask: number; readonly ops: readonly StoreOp[] }
  | { readonly t: "done"; readonly id: number; readonly outcome: TaskOutcome }
  | {
      readonly t: "log";
      readonly level: LogLevel;
      readonly message: string;
      readonly fields: JsonObject | undefined;
    }
  | { readonly t: "pong" };
