import type { JsonObject } from "../model/json.ts";

type Block = Record<string, unknown>;

/** Fields that are not concatenated: they have the same value in every piece of a block. */
const FIXED: ReadonlySet<string> = new Set(["type", "id", "name", "index"]);

/**
 * Merges a streamed piece into `left`, as clients do: strings and lists are concatenated, the fields in {@link FIXED}
 * keep their first value, and other values are replaced.
 */
export function mergePiece(left: Block, right: JsonObject): void {
  for (const [key, value] of Object.entries(right)) {
    const before = left[key];
    if (value === undefined || value === null) left[key] ??= value;
    else if (FIXED.has(key)) left[key] = before ?? value;
    else if (typeof before === "string" && typeof value === "string") left[key] = before + value;
    else if (Array.isArray(before) && Array.isArray(value)) left[key] = [...before, ...value];
    else left[key] = value;
  }
}

/** True if the block has this type, and contains nothing but its text. */
export function isPlainBlock(block: JsonObject | undefined, type: "text" | "reasoning"): boolean {
  return block?.["type"] === type && typeof block[type] === "string" && Object.keys(block).length === 2;
}

/** The content blocks of a message that is being streamed. */
export class StreamedContentBlocks {
  readonly #list: Block[];
  /** Positions in the list, by the `index` that the model's stream gives a block. */
  readonly #positions = new Map<unknown, number>();

  /** @param text the text that was streamed before the first block */
  constructor(text: string) {
    this.#list = text === "" ? [] : [{ type: "text", text }];
  }

  get list(): readonly JsonObject[] {
    return this.#list;
  }

  /** Adds a piece. Returns the piece to send, with the position of its block in the list as `index`. */
  add(block: JsonObject): JsonObject {
    const { index } = block;
    const position = this.#positions.get(index) ?? this.#last(block);
    const grown = this.#list[position];
    if (grown !== undefined) mergePiece(grown, block);
    else this.#list.push({ ...block });
    if (index !== undefined && index !== null) this.#positions.set(index, position);
    return { ...block, index: position };
  }

  /** The position of the last block if `block` continues that block's text, else the next free position. */
  #last(block: JsonObject): number {
    const last = this.#list.length - 1;
    for (const type of ["text", "reasoning"] as const) {
      if (isPlainBlock(block, type) && isPlainBlock(this.#list[last], type)) return last;
    }
    return this.#list.length;
  }
}
