import type { JsonObject } from "../model/json.ts";
import type { NodeCall } from "../ports/engine.ts";
import type { NodeIo } from "../ports/node-executor.ts";
import type {
  CallChunk,
  MessageInit,
  MessageMaker,
  MessageWriter,
  WholeCall,
} from "../graph/node-context.ts";
import { copiedObjectField } from "../graph/parse-state-fields.ts";
import { toContentBlock, type Message } from "../graph/message.ts";
import type { ToolCall } from "../graph/tool-call.ts";
import { addUsage, toUsage, type Usage, type UsageLike } from "../graph/token-usage.ts";
import { StreamedToolCalls, type ToolCallPart } from "./streamed-tool-calls.ts";
import { StreamedContentBlocks, mergePiece, isPlainBlock } from "./streamed-content-blocks.ts";
import type { MessageDraft } from "./model-chunk-types.ts";
import { writeModelStream } from "./model-stream.ts";
import { streamedId, streamedIdBase } from "./streamed-message-ids.ts";

/** The most characters of a message, so that a model that never stops does not fill the memory. */
const MAX_LENGTH = 16 * 1024 * 1024;
const MAX_ID_LENGTH = 256;

/** A message that is being streamed. It emits each piece as an event of the run, and collects the pieces for the whole message. */
class StreamedMessage implements MessageDraft {
  readonly id: string;
  readonly #io: NodeIo;
  readonly #name: string | null;
  /**
   * The id of the `message` event with which the message began, to which its tokens refer; -1 if the attempt of the task was already over.
   */
  readonly #eventId: number;
  readonly #response: Record<string, unknown>;
  readonly #kwargs: Record<string, unknown>;
  /** The text so far; not used after the first content block. */
  #text = "";
  #blocks: StreamedContentBlocks | undefined;
  #calls: StreamedToolCalls | undefined;
  #size = 0;
  #usage: Usage | null = null;
  #done: Message | undefined;

  constructor(io: NodeIo, call: NodeCall, id: string, init: MessageInit) {
    this.id = id;
    this.#io = io;
    const { model } = init;
    this.#name = init.name === undefined ? null : String(init.name);
    this.#response = { ...copiedObjectField(init.response_metadata, "response_metadata") };
    this.#kwargs = { ...copiedObjectField(init.additional_kwargs, "additional_kwargs") };
    let { meta } = call;
    if (model !== undefined) {
      this.#response["model_name"] ??= String(model);
      meta = { ...meta, ls_model_type: "chat", ls_model_name: String(model) };
    }
    this.#eventId = io.emit({ t: "message", id, name: this.#name, ns: call.ns, meta });
  }

  write(part: string | JsonObject): void {
    if (typeof part !== "string") return this.#block(part);
    if (this.#done !== undefined) throw ended();
    if (part === "") return;
    this.#size += part.length;
    if (this.#size > MAX_LENGTH) throw tooLong();
    if (this.#blocks !== undefined)
      return this.#emitPiece({ content: [this.#blocks.add({ type: "text", text: part })] });
    this.#text += part;
    if (this.#eventId >= 0) this.#io.emit({ t: "token", m: this.#eventId, text: part });
  }

  #block(part: unknown): void {
    if (typeof part !== "object" || part === null || Array.isArray(part)) {
      throw new TypeError(
        `message.write takes text or a content block, not ${Array.isArray(part) ? "an array" : String(part)}`,
      );
    }
    const block = toContentBlock(part, "message.write");
    if (isPlainBlock(block, "text")) return this.write(block["text"] as string);
    if (this.#done !== undefined) throw ended();
    this.#grow(JSON.stringify(block).length);
    this.#blocks ??= new StreamedContentBlocks(this.#text);
    this.#emitPiece({ content: [this.#blocks.add(block)] });
  }

  toolCall(call: WholeCall): ToolCall;
  toolCall(chunk: CallChunk): void;
  toolCall(part: ToolCallPart): ToolCall | undefined;
  toolCall(part: ToolCallPart): ToolCall | undefined {
    if (this.#done !== undefined) throw ended();
    const { call, chunk } = (this.#calls ??= new StreamedToolCalls(this.id)).add(part);
    this.#grow((chunk["args"] as string).length);
    this.#emitPiece(
      call === undefined ? { tool_call_chunks: [chunk] } : { tool_calls: [call], tool_call_chunks: [chunk] },
    );
    return call;
  }

  hasCall(id: string): boolean {
    return this.#calls?.has(id) === true;
  }

  dropCall(id: string): void {
    this.#calls?.drop(id);
  }

  usage(usage: UsageLike): void {
    if (this.#done !== undefined) throw ended();
    this.#usage = toUsage(usage, "usage");
  }

  addUsage(share: Usage): void {
    this.#usage = this.#usage === null ? share : addUsage(this.#usage, share);
  }

  addMetadata(metadata: JsonObject): void {
    Object.assign(this.#response, copiedObjectField(metadata, "response_metadata"));
  }

  addFields(fields: JsonObject): void {
    const copy = copiedObjectField(fields, "additional_kwargs");
    this.#grow(JSON.stringify(copy).length);
    mergePiece(this.#kwargs, copy);
  }

  #grow(by: number): void {
    this.#size += by;
    if (this.#size > MAX_LENGTH) throw tooLong();
  }

  #emitPiece(chunk: JsonObject): void {
    if (this.#eventId >= 0) this.#io.emit({ t: "piece", m: this.#eventId, chunk });
  }

  end(): Message {
    return (this.#done ??= this.#end());
  }

  #end(): Message {
    const response_metadata: JsonObject = { ...this.#response };
    // Usage and metadata are sent only with the last piece: clients add up the counts and concatenate the texts of all pieces.
    const chunk: Record<string, unknown> = {};
    if (this.#usage !== null) chunk["usage_metadata"] = this.#usage;
    if (Object.keys(response_metadata).length > 0) chunk["response_metadata"] = response_metadata;
    if (Object.keys(chunk).length > 0) this.#emitPiece(chunk);
    const message: Message = {
      content: this.#blocks?.list ?? this.#text,
      additional_kwargs: { ...this.#kwargs },
      response_metadata,
      type: "ai",
      name: this.#name,
      id: this.id,
      example: false,
      ...(this.#calls?.finish() ?? { tool_calls: [], invalid_tool_calls: [] }),
      usage_metadata: this.#usage,
    };
    // Frees the memory: the message now has the content, and a node may keep the writer for long.
    this.#text = "";
    this.#blocks = undefined;
    this.#calls = undefined;
    return message;
  }
}

function ended(): TypeError {
  return new TypeError("The message has been ended; begin a new one");
}

function tooLong(): RangeError {
  return new RangeError(`The message holds more than ${MAX_LENGTH} characters`);
}

/**
 * Makes `ctx.message` for one attempt of a task.
 * @param check throws once this attempt is over
 * @param onCustomId called with each message id that the node chooses itself
 */
export function createMessageMaker(
  call: NodeCall,
  io: NodeIo,
  check: () => void,
  onCustomId: (id: string) => void,
): MessageMaker {
  let ids: string | undefined;
  let count = 0;
  const idOf = ({ id }: MessageInit): string => {
    if (id === undefined)
      return streamedId((ids ??= streamedIdBase(call.task, call.attempt, call.try)), count++);
    if (typeof id !== "string" || id === "" || id.length > MAX_ID_LENGTH) {
      throw new TypeError(`The id of a message must be a text of 1 to ${MAX_ID_LENGTH} characters`);
    }
    onCustomId(id);
    return id;
  };
  const begin = (init: MessageInit = {}): StreamedMessage => {
    check();
    return new StreamedMessage(io, call, idOf(init), init);
  };
  const from: MessageMaker["from"] = async (source, init) => {
    const message = begin(init);
    await writeModelStream(source, message, io.signal);
    return message.end();
  };
  return Object.assign((init?: MessageInit): MessageWriter => begin(init), { from });
}
