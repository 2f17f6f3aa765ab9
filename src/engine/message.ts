import { isObject, toStorable, type JsonObject } from "../model/json.ts";
import { hex32 } from "../model/ids.ts";
import type { NodeCall } from "../ports/engine.ts";
import type { NodeIo } from "../ports/host.ts";
import type { MessageInit, MessageMaker, MessageWriter } from "../graph/context.ts";
import type { Message, ToolCall, Usage } from "../graph/message.ts";
import { streamedId, streamedIds } from "./streamed.ts";

function plain(value: unknown, at: string): JsonObject {
  const copy = toStorable(value ?? {}, at);
  if (!isObject(copy)) throw new TypeError(`${at} must be an object`);
  return copy;
}

/** A message on its way: its tokens go to the run's log, its text is gathered for the end. */
class StreamedMessage implements MessageWriter {
  readonly id: string;
  readonly #io: NodeIo;
  readonly #init: MessageInit;
  /** The id of its `message` event, by which its tokens name it; -1 when the attempt is over. */
  readonly #m: number;
  readonly #calls: ToolCall[] = [];
  #text = "";
  #usage: Usage | null = null;
  #done: Message | undefined;

  constructor(io: NodeIo, call: NodeCall, id: string, init: MessageInit) {
    this.id = id;
    this.#io = io;
    this.#init = init;
    const { ns, meta } = call;
    this.#m = io.emit({ t: "message", id, name: init.name ?? null, ns, meta });
  }

  write(text: string): void {
    if (typeof text !== "string") throw new TypeError(`message.write takes text, not a ${typeof text}`);
    if (this.#done !== undefined) throw new TypeError("The message has been ended; begin a new one");
    if (text === "") return;
    this.#text += text;
    if (this.#m >= 0) this.#io.emit({ t: "token", m: this.#m, text });
  }

  toolCall(call: { readonly name: string; readonly args: JsonObject; readonly id?: string }): ToolCall {
    if (this.#done !== undefined) throw new TypeError("The message has been ended; begin a new one");
    const index = this.#calls.length;
    const id = call.id ?? `call_${hex32(`${this.id}|${index}`)}`;
    const args = plain(call.args, "toolCall.args");
    const made: ToolCall = { name: String(call.name), args, id, type: "tool_call" };
    this.#calls.push(made);
    const chunk = { name: made.name, args: JSON.stringify(args), id, index, type: "tool_call_chunk" };
    this.#piece({ tool_calls: [made], tool_call_chunks: [chunk] });
    return made;
  }

  usage(usage: Usage): void {
    this.#usage = plain(usage, "usage") as Usage;
    this.#piece({ usage_metadata: this.#usage });
  }

  #piece(chunk: JsonObject): void {
    if (this.#m >= 0) this.#io.emit({ t: "piece", m: this.#m, chunk });
  }

  end(): Message {
    this.#done ??= {
      content: this.#text,
      additional_kwargs: plain(this.#init.additional_kwargs, "additional_kwargs"),
      response_metadata: plain(this.#init.response_metadata, "response_metadata"),
      type: "ai",
      name: this.#init.name ?? null,
      id: this.id,
      example: false,
      tool_calls: this.#calls,
      invalid_tool_calls: [],
      usage_metadata: this.#usage,
    };
    return this.#done;
  }
}

/** `ctx.message` of one attempt. `check` throws once the attempt is over. */
export function messageMaker(call: NodeCall, io: NodeIo, check: () => void): MessageMaker {
  let ids: string | undefined;
  let count = 0;
  const begin = (init: MessageInit = {}): MessageWriter => {
    check();
    ids ??= streamedIds(call.task, call.attempt, call.try);
    return new StreamedMessage(io, call, streamedId(ids, count++), init);
  };
  const from: MessageMaker["from"] = async (source, init) => {
    const message = begin(init);
    for await (const text of source) {
      io.signal.throwIfAborted();
      message.write(text);
    }
    return message.end();
  };
  return Object.assign(begin, { from });
}
