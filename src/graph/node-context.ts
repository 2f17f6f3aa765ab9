import type { JsonObject } from "../model/json.ts";
import type { MachineMailbox } from "../model/machine-mailbox.ts";
import type { Message } from "./message.ts";
import type { NodeStore } from "./node-store.ts";
import type { Schema } from "./standard-schema.ts";
import type { ToolCall } from "./tool-call.ts";
import type { UsageLike } from "./token-usage.ts";

/** The logger of a node. Each line has the ids of the run and the thread, and the node's name. */
export interface Log {
  debug(message: string, fields?: JsonObject): void;
  info(message: string, fields?: JsonObject): void;
  warn(message: string, fields?: JsonObject): void;
  error(message: string, fields?: JsonObject): void;
}

export interface MessageInit {
  /**
   * Your own id, of up to 256 characters. Default: a generated id, different for each attempt of a task. With your own
   * id, clients append the tokens of a retry to those of the failed attempt.
   */
  readonly id?: string;
  readonly name?: string;
  /** The model's name. It is sent with every token (`ls_model_name`) and stored in `response_metadata.model_name`. */
  readonly model?: string;
  readonly additional_kwargs?: JsonObject;
  readonly response_metadata?: JsonObject;
}

/** A whole tool call, with its arguments. */
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
  /**
   * The index of the tool call to which this part belongs. Default: the call with the `id` of this part, or a new call
   * if no call has this id; without an `id`, a new call if the part has a `name`, else the last call.
   */
  readonly index?: number | undefined;
}

/** Writes an AI message that is streamed token by token. */
export interface MessageWriter {
  /** The id of the message. Its tokens and the stored message have the same id. */
  readonly id: string;
  /**
   * Adds text to the content, or a content block such as `{ type: "image_url", image_url }`. A call is cheap enough to
   * be made for every token. Text continues the text before it, `{ type: "reasoning", reasoning }` continues the
   * reasoning before it, and a block with an `index` continues the block with the same index.
   * @throws RangeError if the message would have more than 16 Mi characters
   */
  write(part: string | JsonObject): void;
  /** Adds a whole tool call. */
  toolCall(call: WholeCall): ToolCall;
  /**
   * Adds a piece of a tool call. If the complete arguments are not the JSON text of an object, the call
   * becomes an invalid tool call.
   */
  toolCall(chunk: CallChunk): void;
  /** Sets the token counts of the model call; a later call replaces an earlier one. */
  usage(usage: UsageLike): void;
  /** Ends the message and returns it, for the node's update. Nothing can be added afterwards. */
  end(): Message;
}

export interface MessageMaker {
  /** Begins a message (stream modes `messages-tuple` and `messages`). */
  (init?: MessageInit): MessageWriter;
  /**
   * Streams all of `source`, and resolves with the finished message. The source yields strings, chunks of the OpenAI API,
   * stream parts of the AI SDK (`fullStream`) or LangChain's AIMessageChunks; each is recognised by its shape.
   * Rejects when `ctx.signal` aborts, when the source fails, and with a TypeError for a chunk of another shape.
   */
  from(source: AsyncIterable<unknown> | Iterable<unknown>, init?: MessageInit): Promise<Message>;
}

/** A function that runs in parallel with others within one task. `runTools` uses it, nodes do not. */
export interface ParallelFunction {
  /** Identifies the function on a replay. The same work MUST have the same key. */
  readonly key: string;
  run(ctx: Ctx): Promise<unknown>;
}

/**
 * The context of a node function, for one attempt of its task. Once the attempt has ended, `interrupt`, `step`, `emit`, `message` and
 * `store` throw or reject.
 */
export interface Ctx<C = unknown> {
  /**
   * Pauses the run until a human answers. The node then runs again from its start; this time the call resolves with the
   * answer (the n-th call with the n-th answer). The node MUST NOT catch the error by which the call pauses the run:
   * this error is no failure. With a `schema`, an answer that the schema refuses fails the run, and the interrupt stays
   * open.
   */
  interrupt<A = unknown>(value: unknown, options?: { readonly schema?: Schema<unknown, A> }): Promise<A>;
  /**
   * Runs `fn`, stores its result and resolves with it. On a replay of this task, resolves with the stored result
   * without running `fn` again. (`undefined` is stored as null.) A second call with the same key gets the same result.
   */
  step<T>(key: string, fn: () => T | Promise<T>): Promise<T>;
  /** Sends `data` to the stream mode `custom`. @throws ServiceError `value.unstorable`, with the path */
  emit(data: unknown): void;
  readonly message: MessageMaker;
  /**
   * Aborts when the node function has to stop: its run was cancelled, superseded or timed out, its task timed out,
   * another task of the step failed, or the attempt is over.
   */
  readonly signal: AbortSignal;
  /** The merged config of the assistant and the run, with `configurable`. */
  readonly config: JsonObject;
  /** The merged context of the assistant and the run, validated by the graph's `context` schema. */
  readonly context: C;
  /**
   * Long-term memory, which all threads of the tenant and its clients (`/store`) share. A write is stored when its promise
   * resolves, no matter what happens to the run. A node that runs again writes again, unless it writes in a `step`. When the
   * attempt has ended, every call rejects.
   */
  readonly store: NodeStore;
  readonly runId: string;
  readonly threadId: string;
  readonly taskId: string;
  /** The number of the run's attempt, from 1. */
  readonly attempt: number;
  /** The namespace of the graph to which the node belongs: `""` for the root graph. */
  readonly ns: string;
  readonly log: Log;
  /** Internal: the time in epoch milliseconds, from a clock that never jumps. Timers of machines are due by this time. */
  readonly "~now"?: () => number;
  /** Internal, for machines: like `emit`, but the event is emitted in the namespace of a child machine. */
  readonly "~emitIn"?: (ns: string, data: unknown) => void;
  /** Internal, for `runTools`: emits the data of an event of the stream mode `tools`. */
  readonly "~reportTool"?: (data: JsonObject) => void;
  /** Internal, for machines: whether an answer to the node's first interrupt is stored. */
  readonly "~isAnswered"?: boolean;
  /** Internal, for machines: the events of the runs that are queued behind this run. */
  readonly "~mailbox"?: MachineMailbox | undefined;
  /**
   * Internal: runs functions in parallel and waits for all of them. Each has its own interrupts and its own
   * `step` keys. If at least one of them pauses, the results of the finished ones are stored, so that a
   * replay does not run them again. Results MUST be storable.
   */
  readonly "~parallel"?: (
    bodies: readonly ParallelFunction[],
  ) => Promise<readonly PromiseSettledResult<unknown>[]>;
}
