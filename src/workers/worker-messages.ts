import type { ErrorCode, PlainError } from "../model/errors.ts";
import type { Fact } from "../model/run-event.ts";
import type { StoreOp } from "../model/store-item.ts";
import type { JsonObject } from "../model/json.ts";
import type { NodeCall, TaskOutcome } from "../ports/engine.ts";
import type { LogLevel } from "../ports/logger.ts";

/** To a worker. `id` names one call of a node among those of the server. */
export type ToWorker =
  | { readonly t: "call"; readonly id: number; readonly call: NodeCall }
  /** The body's signal aborts, with a DOMException of this name. */
  | { readonly t: "abort"; readonly id: number; readonly name: string; readonly message: string }
  /** What the body asked for is done, or why it is not. */
  | {
      readonly t: "answer";
      readonly id: number;
      readonly ask: number;
      readonly value?: unknown;
      /** With the code that one of ours has. */
      readonly error?: PlainError & { readonly code?: ErrorCode };
    }
  /** Is anybody there? A body may keep the thread to itself. */
  | { readonly t: "ping" };

/**
 * From a worker. What one turn says comes in one list. A `message` fact has a number in its call, from 0: its tokens and
 * pieces name it by that, since the id of its event is given out by the server.
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
