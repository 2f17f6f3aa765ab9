import type { JsonObject } from "../model/json.ts";
import type { Message, ToolCall, Usage } from "./message.ts";
import type { Schema } from "./schema.ts";

/** Log lines of a node; the run, the thread and the node are named in each. */
export interface Log {
  debug(message: string, fields?: JsonObject): void;
  info(message: string, fields?: JsonObject): void;
  warn(message: string, fields?: JsonObject): void;
  error(message: string, fields?: JsonObject): void;
}

export interface MessageInit {
  readonly name?: string;
  readonly additional_kwargs?: JsonObject;
  readonly response_metadata?: JsonObject;
}

/** An ai message that is being streamed, token by token. */
export interface MessageWriter {
  /** Fixed from the start: the tokens and the stored message share it. */
  readonly id: string;
  /** Adds text to the content. Cheap: call it for every token. */
  write(text: string): void;
  /** Adds a finished tool call. */
  toolCall(call: { readonly name: string; readonly args: JsonObject; readonly id?: string }): ToolCall;
  /** Says what the model call cost; the last word counts. */
  usage(usage: Usage): void;
  /** The finished message, which the node returns in its update. */
  end(): Message;
}

export interface MessageMaker {
  /** Begins a message (stream modes `messages-tuple` and `messages`). */
  (init?: MessageInit): MessageWriter;
  /** Streams all of `source`, and resolves with the finished message. Stops when the run does. */
  from(source: AsyncIterable<string> | Iterable<string>, init?: MessageInit): Promise<Message>;
}

/** What a node may do beside returning an update. Dead once its attempt has ended. */
export interface Ctx<C = unknown> {
  /**
   * Pauses the run until a human answers, and resolves with the answer. The node runs again from its start then: its n-th
   * call gets the n-th answer. MUST NOT be caught: what it throws is no error. With a `schema`, an answer that it refuses
   * fails the run, and the question stays.
   */
  interrupt<A = unknown>(value: unknown, options?: { readonly schema?: Schema<unknown, A> }): Promise<A>;
  /**
   * Runs `fn` once for all replays of this task, and resolves with its stored result (`undefined` is stored as null).
   * A second call with the same key gets the same result.
   */
  step<T>(key: string, fn: () => T | Promise<T>): Promise<T>;
  /** Sends `data` to readers of the stream mode `custom`. @throws ServiceError `value.unstorable` naming the path */
  emit(data: unknown): void;
  readonly message: MessageMaker;
  /** Aborts when the run is cancelled, superseded or timed out. */
  readonly signal: AbortSignal;
  /** The assistant's and the run's config, with `configurable`. */
  readonly config: JsonObject;
  /** The assistant's and the run's context, checked by the graph's schema for it. */
  readonly context: C;
  readonly runId: string;
  readonly threadId: string;
  readonly taskId: string;
  /** 1 for the first attempt of the run. */
  readonly attempt: number;
  /** The graph's place: `""` for the root graph. */
  readonly ns: string;
  readonly log: Log;
}
