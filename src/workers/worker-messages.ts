import type { ErrorCode, PlainError } from "../model/errors.ts";
import type { Fact } from "../model/run-event.ts";
import type { StoreOp } from "../model/store-item.ts";
import type { JsonObject } from "../model/json.ts";
import type { NodeCall, TaskOutcome } from "../ports/engine.ts";
import type { LogLevel } from "../ports/logger.ts";

/** Messages to a worker. `id` identifies a call of a node; the server numbers the calls of each worker. */
export type ToWorker =
  /** The first message: shared memory in which the worker stores the id of the call that it began last. */
  | { readonly t: "begun"; readonly begun: Int32Array }
  | { readonly t: "call"; readonly id: number; readonly call: NodeCall }
  /** Aborts the signal of a call, with a DOMException of this name. */
  | { readonly t: "abort"; readonly id: number; readonly name: string; readonly message: string }
  /** The result or the error of a `record` or `store` request. */
  | {
      readonly t: "answer";
      readonly id: number;
      readonly ask: number;
      readonly value?: unknown;
      /** `code`: the code of a `ServiceError`. */
      readonly error?: PlainError & { readonly code?: ErrorCode };
    }
  /** Requests a `pong`. A node function that blocks the thread prevents the answer. */
  | { readonly t: "ping" };

/**
 * Messages from a worker, sent as one list for each turn of the event loop. `message` facts are numbered within their call,
 * from 0; token and piece facts refer to these numbers, since the server assigns the event ids.
 */
export type FromWorker =
  /** The graphs are loaded. */
  | { readonly t: "ready" }
  | { readonly t: "refused"; readonly error: PlainError }
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
