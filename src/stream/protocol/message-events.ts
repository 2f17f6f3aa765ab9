import type { Fact } from "../../model/run-event.ts";
import { isObject, type JsonObject } from "../../model/json.ts";
import { MessageBlocks, type BlockEventHandler } from "./message-blocks.ts";

type FactOf<T extends Fact["t"]> = Extract<Fact, { t: T }>;

/** Receives an event of a message, with the namespace and the node that emitted it. */
export type MessageEventHandler = (ns: string, node: unknown, data: JsonObject) => void;

interface Streaming {
  readonly id: string;
  readonly emit: BlockEventHandler;
  readonly blocks: MessageBlocks;
  usage: unknown;
  metadata: JsonObject;
}

const ROLES: ReadonlyMap<unknown, string> = new Map([
  ["ai", "ai"],
  ["human", "human"],
  ["system", "system"],
]);

/**
 * The maximum number of messages whose streaming is tracked at the same time. Beyond it, the oldest message is dropped: its further pieces
 * are not emitted, and the complete message is emitted as a whole.
 */
const MAX_STREAMING_MESSAGES = 256;

/** Emits the messages of one run as protocol events: streamed messages, and messages that nodes return whole. */
export class MessageEvents {
  readonly #emit: MessageEventHandler;
  readonly #streaming = new Map<number, Streaming>();

  constructor(emit: MessageEventHandler) {
    this.#emit = emit;
  }

  begin(m: number, { id, ns, meta }: FactOf<"message">): void {
    if (this.#streaming.size >= MAX_STREAMING_MESSAGES) {
      for (const [oldest] of this.#streaming) {
        this.#streaming.delete(oldest);
        break;
      }
    }
    this.#streaming.set(m, this.#start("ai", id, ns, meta));
  }

  token({ m, text }: FactOf<"token">): void {
    this.#streaming.get(m)?.blocks.text(text);
  }

  piece({ m, chunk }: FactOf<"piece">): void {
    const message = this.#streaming.get(m);
    if (message === undefined) return;
    const { content, tool_call_chunks, usage_metadata, response_metadata } = chunk;
    if (typeof content === "string") message.blocks.text(content);
    else for (const block of objectsIn(content)) message.blocks.content(block);
    for (const call of objectsIn(tool_call_chunks)) message.blocks.call(call);
    if (isObject(usage_metadata)) message.usage = usage_metadata;
    if (isObject(response_metadata)) message.metadata = { ...message.metadata, ...response_metadata };
  }

  complete({ message, streamed, ns, meta }: FactOf<"complete">): void {
    const { id, content } = message;
    const known = streamed ? this.#take(id) : undefined;
    if (known !== undefined) return this.#finish(known, message);
    const role = ROLES.get(message["type"]);
    if (role === undefined || typeof id !== "string") return;
    const whole = this.#start(role, id, ns, meta);
    if (typeof content === "string") whole.blocks.text(content);
    else for (const block of objectsIn(content)) whole.blocks.content(block);
    // The index keeps calls without an id apart.
    for (const [index, { id: call, name, args }] of objectsIn(message["tool_calls"]).entries()) {
      whole.blocks.call({ id: call, name, args: JSON.stringify(args ?? {}), index });
    }
    this.#finish(whole, message);
  }

  #start(role: string, id: string, ns: string, meta: JsonObject): Streaming {
    const node = meta["langgraph_node"];
    // `run_id` is the id of the message, so that clients can tell apart messages that one node streams at the same time.
    const emit: BlockEventHandler = (data) => this.#emit(ns, node, { ...data, run_id: id });
    const { ls_model_name: model, ls_provider: provider } = meta;
    const metadata = {
      ...(typeof model === "string" && { model }),
      ...(typeof provider === "string" && { provider }),
    };
    emit({ event: "message-start", role, id, metadata });
    return { id, emit, blocks: new MessageBlocks(emit), usage: null, metadata: {} };
  }

  #take(id: unknown): Streaming | undefined {
    for (const [m, message] of this.#streaming) {
      if (message.id !== id) continue;
      this.#streaming.delete(m);
      return message;
    }
    return undefined;
  }

  #finish({ emit, blocks, usage, metadata }: Streaming, message: JsonObject): void {
    blocks.end();
    const spent = isObject(message["usage_metadata"]) ? message["usage_metadata"] : usage;
    emit({
      event: "message-finish",
      reason: objectsIn(message["tool_calls"]).length > 0 ? "tool_use" : "stop",
      ...(isObject(spent) && { usage: spent }),
      ...(Object.keys(metadata).length > 0 && { metadata }),
    });
  }
}

export const objectsIn = (list: unknown): readonly JsonObject[] =>
  Array.isArray(list) ? list.filter((item): item is JsonObject => isObject(item)) : [];
