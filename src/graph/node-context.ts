import type { JsonObject } from "../model/json.ts";
import type { Message } from "./message.ts";
import type { NodeStore } from "./node-store.ts";
import type { Schema } from "./standard-schema.ts";
import type { ToolCall } from "./tool-call.ts";
import type { UsageLike } from "./token-usage.ts";

/** Log lines of a node; the run, the thread and the node are named in each. */
export interface Log {
  debug(message: string, fields?: JsonObject): void;
  info(message: string, fields?: JsonObject): void;
  warn(message: string, fields?: JsonObject): void;
  error(message: string, fields?: JsonObject): void;
}

export interface MessageInit {
  /**
   * An id of your own, up to 256 characters; without it each try of a task has ids of its own. A retry that streams under
   * the same id is appended, by who reads along, to what the failed try has streamed.
   */
  readonly id?: string;
  readonly name?: string;
  /** The model that is asked: told with every token (`ls_model_name`) and kept in `response_metadata.model_name`. */
  readonly model?: string;
  readonly additional_kwargs?: JsonObject;
  readonly response_metadata?: JsonObject;
}

/** A whole tool call: its arguments are known. */
export interface WholeCall {
  readonly name: string;
  readonly args?: JsonObject;
  readonly id?: string;
  readonly index?: number;
}

/** A part of a tool call, as models stream it: the name first, the arguments as pieces of JSON text. */
export interface CallChunk {
  readonly name?: string | undefined;
  readonly args: string;
  readonly id?: string | undefined;
  /** Which call of the message it belongs to; without it the one with this id, or the last one. */
  readonly index?: number | undefined;
}

/** An ai message that is being streamed, token by token. */
export interface MessageWriter {
  /** Fixed from the start: the tokens and the stored message share it. */
  readonly id: string;
  /**
   * Adds text to the content (cheap: call it for every token), or a content block such as
   * `{ type: "image_url", image_url }`. Text goes on with the text before it, `{ type: "reasoning", reasoning }` with the
   * reasoning before it, and a block with an `index` with the one of the same index.
   * @throws RangeError when the message would hold more than 16 Mi characters
   */
  write(part: string | JsonObject): void;
  /** Adds a whole tool call. */
  toolCall(call: WholeCall): ToolCall;
  /** Adds to a tool call whose arguments are being streamed; what is no JSON at the end is an invalid tool call. */
  toolCall(chunk: CallChunk): void;
  /** Says what the model call cost; the last word counts. */
  usage(usage: UsageLike): void;
  /** The finished message, which the node returns in its update. Nothing can be added after it. */
  end(): Message;
}

export interface MessageMaker {
  /** Begins a message (stream modes `messages-tuple` and `messages`). */
  (init?: MessageInit): MessageWriter;
  /**
   * Streams all of `source`, and resolves with the finished message. The source brings strings, chunks of the OpenAI API,
   * stream parts of the AI SDK (`fullStream`) or LangChain's AIMessageChunks, each known by its shape.
   * Rejects when `ctx.signal` aborts, when the source fails, and with a TypeError for a chunk of another shape.
   */
  from(source: AsyncIterable<unknown> | Iterable<unknown>, init?: MessageInit): Promise<Message>;
}

/** Runs several bodies side by side within one task, for `runTools`; not for nodes. */
export interface Side {
  /** What it is known by on a replay: the same for the same work. */
  readonly key: string;
  run(ctx: Ctx): Promise<unknown>;
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
  /**
   * Long-term memory, shared by all threads of the tenant and by its clients (`/store`). A write is stored once its promise
   * resolves, whatever becomes of the run; a node that runs again writes again, unless it does so in a `step`. Once the
   * attempt has ended every call rejects.
   */
  readonly store: NodeStore;
  readonly runId: string;
  readonly threadId: string;
  readonly taskId: string;
  /** 1 for the first attempt of the run. */
  readonly attempt: number;
  /** The graph's place: `""` for the root graph. */
  readonly ns: string;
  readonly log: Log;
  /**
   * Runs all sides and waits for all. Each has its own questions and its own `step` keys. When one pauses, the results of those
   * that have ended are kept: on the replay they are not run again. Results MUST be storable.
   */
  readonly "~sides"?: (sides: readonly Side[]) => Promise<readonly PromiseSettledResult<unknown>[]>;
}
