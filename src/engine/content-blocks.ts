import type { JsonObject } from "../model/json.ts";

type Block = Record<string, unknown>;

/** Never added to: what they say of a block holds for all of its pieces. */
const FIXED: ReadonlySet<string> = new Set(["type", "id", "name", "index"]);

/** One object goes on with another, as clients put streamed pieces together: texts and lists are joined, the rest replaced. */
export function extend(left: Block, right: JsonObject): void {
  for (const [key, value] of Object.entries(right)) {
    const before = left[key];
    if (value === undefined || value === null) left[key] ??= value;
    else if (FIXED.has(key)) left[key] = before ?? value;
    else if (typeof before === "string" && typeof value === "string") left[key] = before + value;
    else if (Array.isArray(before) && Array.isArray(value)) left[key] = [...before, ...value];
    else left[key] = value;
  }
}

/** Does the block say nothing but this one text? */
export function says(block: JsonObject | undefined, type: "text" | "reasoning"): boolean {
  return block?.["type"] === type && typeof block[type] === "string" && Object.keys(block).length === 2;
}

/** The content of a message on its way that is more than text: a list of blocks. */
export class Blocks {
  readonly #list: Block[];
  /** Where the block with a given `index` stands. */
  readonly #places = new Map<unknown, number>();

  /** What has been written so far was text alone. */
  constructor(text: string) {
    this.#list = text === "" ? [] : [{ type: "text", text }];
  }

  get list(): readonly JsonObject[] {
    return this.#list;
  }

  /** Takes a block in, and gives the piece to send: its `index` names the place of the block that it belongs to. */
  add(block: JsonObject): JsonObject {
    const { index } = block;
    const place = this.#places.get(index) ?? this.#last(block);
    const grown = this.#list[place];
    if (grown !== undefined) extend(grown, block);
    else this.#list.push({ ...block });
    if (index !== undefined && index !== null) this.#places.set(index, place);
    return { ...block, index: place };
  }

  /** The place of the last block, when this one goes on with it; else the next free one. */
  #last(block: JsonObject): number {
    const last = this.#list.length - 1;
    for (const type of ["text", "reasoning"] as const) {
      if (says(block, type) && says(this.#list[last], type)) return last;
    }
    return this.#list.length;
  }
}
