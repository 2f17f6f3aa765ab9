import { isObject, type JsonObject } from "../../model/json.ts";

/** Receives the events of a message, in order. */
export type BlockEventHandler = (data: JsonObject) => void;

interface Block {
  readonly index: number;
  content: Record<string, unknown>;
  open: boolean;
}

/**
 * Emits the content of one message as blocks: each block starts, grows and finishes. Several blocks can be open at the same time only if
 * they are tool calls.
 */
export class MessageBlocks {
  readonly #emit: BlockEventHandler;
  readonly #blocks: Block[] = [];
  readonly #byKey = new Map<string, Block>();

  constructor(emit: BlockEventHandler) {
    this.#emit = emit;
  }

  text(text: string): void {
    if (text === "") return;
    const block = this.#going("text") ?? this.#begin(undefined, { type: "text", text: "" });
    this.#append(block, "text", text);
  }

  /** Adds a piece of content, which begins a new block or continues an earlier block. */
  content(piece: JsonObject): void {
    const { index, ...content } = piece;
    const { type, text, reasoning } = content;
    if (type === "text" && typeof text === "string" && Object.keys(content).length === 2)
      return this.text(text);
    if (type === "reasoning" && typeof reasoning === "string" && Object.keys(content).length === 2) {
      const block = this.#going("reasoning") ?? this.#begin(undefined, { type, reasoning: "" });
      return this.#append(block, "reasoning", reasoning);
    }
    const key = index === undefined ? undefined : `content ${String(index)}`;
    const known = key === undefined ? undefined : this.#byKey.get(key);
    if (known === undefined) {
      this.#begin(key, content);
      return;
    }
    known.content = merged(known.content, content);
    this.#delta(known, { type: "block-delta", fields: known.content });
  }

  /** Adds a tool call, or a piece of one. */
  call(chunk: JsonObject): void {
    const { id = null, name = null, args, index } = chunk;
    const key = `call ${String(index ?? id)}`;
    let block = this.#byKey.get(key);
    block ??= this.#begin(key, { type: "tool_call_chunk", id, name, args: "" });
    const { content } = block;
    content["id"] ??= id;
    content["name"] ??= name;
    content["args"] = `${String(content["args"])}${typeof args === "string" ? args : ""}`;
    if (content["args"] !== "") this.#delta(block, { type: "block-delta", fields: { ...content } });
  }

  end(): void {
    for (const block of this.#blocks) this.#finish(block);
  }

  /** Returns the last block, if it is open and has this type. */
  #going(type: string): Block | undefined {
    const last = this.#blocks.at(-1);
    return last?.open === true && last.content["type"] === type ? last : undefined;
  }

  #begin(key: string | undefined, content: Record<string, unknown>): Block {
    if (content["type"] !== "tool_call_chunk" || this.#going("tool_call_chunk") === undefined) this.end();
    const block: Block = { index: this.#blocks.length, content: { ...content }, open: true };
    this.#blocks.push(block);
    if (key !== undefined) this.#byKey.set(key, block);
    this.#emit({ event: "content-block-start", index: block.index, content });
    return block;
  }

  #append(block: Block, member: "text" | "reasoning", more: string): void {
    block.content[member] = `${String(block.content[member])}${more}`;
    this.#delta(block, { type: `${member}-delta`, [member]: more });
  }

  #delta({ index }: Block, delta: JsonObject): void {
    this.#emit({ event: "content-block-delta", index, delta });
  }

  #finish(block: Block): void {
    if (!block.open) return;
    block.open = false;
    const { index, content } = block;
    const whole = content["type"] === "tool_call_chunk" ? callOf(content) : content;
    this.#emit({ event: "content-block-finish", index, content: whole });
  }
}

function merged(before: JsonObject, more: JsonObject): Record<string, unknown> {
  const joined: Record<string, unknown> = { ...before };
  for (const [key, value] of Object.entries(more)) {
    const known = joined[key];
    const grows = typeof known === "string" && typeof value === "string" && !FIXED.has(key);
    joined[key] = grows ? known + value : (value ?? known);
  }
  return joined;
}

/** Members whose values arrive complete, perhaps several times, and so are not appended. */
const FIXED: ReadonlySet<string> = new Set(["type", "id", "name", "index", "__proto__"]);

function callOf({ id, name, args }: JsonObject): JsonObject {
  try {
    const parsed: unknown = args === "" ? {} : JSON.parse(String(args));
    if (isObject(parsed)) return { type: "tool_call", id, name, args: parsed };
  } catch {
    // The call is returned below as an invalid tool call.
  }
  return { type: "invalid_tool_call", id, name, args, error: "The arguments are no JSON object" };
}
