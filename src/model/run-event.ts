import type { CheckpointHead } from "./checkpoint.ts";
import type { PlainError } from "./errors.ts";
import type { Interrupt } from "./interrupt.ts";
import type { JsonObject } from "./json.ts";

/** What a fact refers to, kept with it where it is not stored of itself: of a run with durability `exit`. */
export interface Inline {
  readonly values: JsonObject;
  readonly head?: CheckpointHead;
}

/**
 * What happened in a run, as its log stores it: facts, not rendered bytes. `values` and the like are a reference to a
 * checkpoint, a token is its text and its message's number. `stream/modes.ts` renders facts as events.
 */
export type Fact =
  /** An attempt began. */
  | { readonly t: "start"; readonly attempt: number }
  /** A checkpoint was made. */
  | {
      readonly t: "checkpoint";
      readonly id: string;
      readonly ns: string;
      readonly step: number;
      /** The one before the input was applied: it has no `values` event. */
      readonly input: boolean;
      /** Its `values` event alone, or all but that; absent: all. */
      readonly shows?: "values" | "rest";
      /** The keys of the state that its `values` event shows; absent: all. */
      readonly output?: readonly string[];
      readonly inline?: Inline;
    }
  /** A task starts, at epoch milliseconds `at`. A push brings its input; a pull reads the state of `checkpoint`. */
  | {
      readonly t: "task";
      readonly id: string;
      readonly name: string;
      readonly ns: string;
      readonly checkpoint: string;
      readonly triggers: readonly string[];
      readonly at: number;
      readonly input?: { readonly value: unknown };
    }
  /**
   * A task that ran from `checkpoint` ended, at epoch milliseconds `at`. `update` is what the node returned, null where it
   * returned nothing.
   */
  | {
      readonly t: "result";
      readonly id: string;
      readonly name: string;
      readonly ns: string;
      readonly checkpoint: string;
      readonly at: number;
      readonly update?: unknown;
      /** What the mode `tasks` shows as its result, where that is not the update. */
      readonly written?: unknown;
      readonly error?: PlainError;
      /** An earlier task's result was taken; the node did not run. */
      readonly cached?: true;
      /** It ended in an earlier run, which told of its end: only its update is shown once more. */
      readonly again?: true;
      readonly interrupts: readonly Interrupt[];
    }
  /** The run pauses: at interrupts, or (an empty list) at a breakpoint. */
  | {
      readonly t: "interrupt";
      readonly ns: string;
      readonly checkpoint: string;
      readonly interrupts: readonly Interrupt[];
      /** The keys of the state that its `values` event shows; absent: all. */
      readonly output?: readonly string[];
      readonly inline?: Inline;
    }
  /** `ctx.emit(data)`: its data as JSON text on one line, made once for storage and for all readers. */
  | { readonly t: "custom"; readonly ns: string; readonly json: string }
  /** A line of the log of `task`, at epoch milliseconds `at`; `stack`: where it failed. */
  | {
      readonly t: "log";
      readonly ns: string;
      readonly task: string;
      readonly node: string;
      readonly level: "debug" | "info" | "warn" | "error";
      readonly at: number;
      readonly message: string;
      readonly fields?: JsonObject;
      readonly stack?: string;
    }
  /** A streamed message begins; its tokens name it by this event's id. */
  | {
      readonly t: "message";
      readonly id: string;
      readonly name: string | null;
      readonly ns: string;
      readonly meta: JsonObject;
    }
  /** A token of message `m` (the id of its `message` event). */
  | { readonly t: "token"; readonly m: number; readonly text: string }
  /** A piece of message `m` that is more than text: tool call chunks, usage, content blocks. */
  | { readonly t: "piece"; readonly m: number; readonly chunk: JsonObject }
  /** A whole message in the state: one that was streamed (`streamed`), or one that a node returned as it is. */
  | {
      readonly t: "complete";
      readonly message: JsonObject;
      readonly streamed: boolean;
      readonly ns: string;
      readonly meta: JsonObject;
    }
  /** The run failed. */
  | { readonly t: "error"; readonly error: PlainError };

/**
 * The events that each kind of fact stands for, in order, by the mode that shows them. Each has an id of its own, whether
 * anyone asked for it or not.
 */
export const slots = {
  start: ["metadata", "events"],
  checkpoint: ["values", "checkpoints", "debug", "messages", "events", "events"],
  task: ["tasks", "debug", "events"],
  result: ["updates", "tasks", "debug", "events", "events", "events"],
  interrupt: ["updates", "values", "events", "events", "events"],
  custom: ["custom"],
  log: ["logs"],
  message: ["messages", "events"],
  token: ["messages-tuple", "messages", "events"],
  piece: ["messages-tuple", "messages", "events"],
  complete: ["messages-tuple", "messages", "events"],
  error: ["error"],
} as const satisfies Record<Fact["t"], readonly string[]>;

/** How many event ids a fact takes. */
export function width(fact: Fact): number {
  return slots[fact.t].length;
}

/** Facts of one run that are stored together; the first event of the first fact has id `first`. */
export interface EventChunk {
  readonly run_id: string;
  readonly first: number;
  readonly facts: readonly Fact[];
}

/** The id that follows a chunk's last event. */
export function endOf(chunk: EventChunk): number {
  let id = chunk.first;
  for (const fact of chunk.facts) id += width(fact);
  return id;
}
