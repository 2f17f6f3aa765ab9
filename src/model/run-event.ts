import type { CheckpointHead } from "./checkpoint.ts";
import type { PlainError } from "./errors.ts";
import type { Interrupt } from "./interrupt.ts";
import type { JsonObject } from "./json.ts";
import type { ChildMachineStatus } from "./machine-child.ts";
import type { EarlierRunTaskResults } from "./earlier-run-task-results.ts";

/**
 * The state to which a fact refers, stored within the fact itself. It is used where the fact refers to no stored checkpoint:
 * with durability `exit`, which stores checkpoints only at the end of the run, and for a state that LangGraph.js streams
 * without a checkpoint.
 */
export interface InlineState {
  readonly values: JsonObject;
  readonly head?: CheckpointHead;
}

/**
 * A fact: something that happened in a run, as its log stores it. A fact is smaller than the events that show it: instead of a
 * state it has a reference to a checkpoint, and a token is only its text and the number of its message.
 * `stream/stream-modes.ts` renders facts as events.
 */
export type Fact =
  /**
   * An attempt of the run began. `events` is set if the graph itself emits the events of the stream mode `events`, as facts
   * `event`. Then that mode shows no other facts.
   */
  | { readonly t: "start"; readonly attempt: number; readonly events?: true }
  /** A checkpoint was made. */
  | {
      readonly t: "checkpoint";
      readonly id: string;
      readonly ns: string;
      readonly step: number;
      /** True for the checkpoint before the input is applied. It has no `values` event. */
      readonly input: boolean;
      /** The stream modes in which the fact is shown: `values` only, or all except `values` (`rest`); absent: all. */
      readonly shows?: "values" | "rest";
      /** The keys of the state that the `values` event of this fact shows; absent: all. */
      readonly output?: readonly string[];
      readonly inline?: InlineState;
      /**
       * Earlier results of the checkpoint's next tasks, by task id. Only runs that request the stream mode `debug` or
       * `checkpoints` have them.
       */
      readonly tasks?: EarlierRunTaskResults;
      /** Whether the child machine goes on, or how it has ended. Present only if the checkpoint is that of a child machine. */
      readonly machine?: ChildMachineStatus;
    }
  /** A task starts, at epoch milliseconds `at`. The `input` of a pushed task is here; a pulled task reads the state of `checkpoint`. */
  | {
      readonly t: "task";
      readonly id: string;
      readonly name: string;
      readonly ns: string;
      readonly checkpoint: string;
      readonly triggers: readonly string[];
      readonly at: number;
      readonly input?: { readonly value: unknown };
      /** True: the task has ended in an earlier run or attempt. Only its start is shown again. */
      readonly again?: true;
    }
  /**
   * A task that ran from `checkpoint` ended, at epoch milliseconds `at`. `update`: what the node returned; null if it returned nothing;
   * absent if the task failed or raised interrupts.
   */
  | {
      readonly t: "result";
      readonly id: string;
      readonly name: string;
      readonly ns: string;
      readonly checkpoint: string;
      readonly at: number;
      readonly update?: unknown;
      /** The result that the mode `tasks` shows, if it is not the update. */
      readonly written?: unknown;
      readonly error?: PlainError;
      /** True: the result is a cached result of an earlier task, and the node did not run. */
      readonly cached?: true;
      /** True: the task ended in an earlier run, which has already reported its end. Only its update is shown again. */
      readonly again?: true;
      readonly interrupts: readonly Interrupt[];
    }
  /** The run pauses at interrupts; if the list is empty, at a breakpoint. */
  | {
      readonly t: "interrupt";
      readonly ns: string;
      readonly checkpoint: string;
      readonly interrupts: readonly Interrupt[];
      /** The keys of the state that the `values` event of this fact shows; absent: all. */
      readonly output?: readonly string[];
      readonly inline?: InlineState;
    }
  /** The data of `ctx.emit(data)`, as JSON text on one line. The text is made once, for the storage and all readers. */
  | { readonly t: "custom"; readonly ns: string; readonly json: string }
  /**
   * An event of LangChain's `streamEvents`, as JSON text on one line. Only runs that request the mode
   * `events` have such facts.
   */
  | { readonly t: "event"; readonly json: string }
  /**
   * A call of a tool starts, reports progress, ends or fails: the data of an event of the stream mode `tools`, as JSON text on one line.
   * Runs of LangGraph.js graphs have such facts only if they request the mode.
   */
  | { readonly t: "tool"; readonly ns: string; readonly json: string }
  /**
   * A log line of `task`, at epoch milliseconds `at`. `stack`: the stack of a logged error. `try`: the number of the
   * failed attempt of the task, if its node may have several attempts.
   */
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
      readonly try?: number;
    }
  /** A streamed message begins. Its tokens refer to the message by the id of this event. */
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
  /** A whole message that is in the state now. `streamed`: it was streamed before; otherwise a node returned it. */
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
 * The events of each kind of fact, in order: for each event, the stream mode that shows it. Each event has its own id, whether
 * or not a client asked for its mode. Do not add an entry to an existing list: that would change the ids of stored events.
 */
export const eventModes = {
  start: ["metadata", "events"],
  checkpoint: ["values", "checkpoints", "debug", "messages", "events", "events"],
  task: ["tasks", "debug", "events"],
  result: ["updates", "tasks", "debug", "events", "events", "events"],
  interrupt: ["updates", "values", "events", "events", "events"],
  custom: ["custom"],
  event: ["events"],
  tool: ["tools"],
  log: ["logs"],
  message: ["messages", "events"],
  token: ["messages-tuple", "messages", "events"],
  piece: ["messages-tuple", "messages", "events"],
  complete: ["messages-tuple", "messages", "events"],
  error: ["error"],
} as const satisfies Record<Fact["t"], readonly string[]>;

/** The number of event ids that a fact takes: one for each of its events. */
export function eventCountOf(fact: Fact): number {
  return eventModes[fact.t].length;
}

/** A group of a run's facts (see {@link Fact}) that is stored as one record. Each fact is shown as one or more events. */
export interface EventChunk {
  readonly run_id: string;
  /** The id of the first event of the first fact. */
  readonly first: number;
  readonly facts: readonly Fact[];
}

/** The id of the event that follows the last event of a chunk. */
export function chunkEnd(chunk: EventChunk): number {
  let id = chunk.first;
  for (const fact of chunk.facts) id += eventCountOf(fact);
  return id;
}
