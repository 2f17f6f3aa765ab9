import { stringifyJson } from "../model/stringify-json.ts";
import { isPlain, isToJson, memorySizeOf } from "../model/memory-size.ts";

/** The approximate number of characters of one piece of JSON text, as {@link jsonPieces} yields it. */
const PIECE_LENGTH = 64 * 1024;
/**
 * Characters that are added to the length of each value inside a value. They limit the values that one call of `JSON.stringify` encodes to
 * 4,000.
 */
const VALUE_LENGTH = PIECE_LENGTH / 4_000;

/** JSON text: a string if it is short, otherwise a {@link LargeJson}. */
export type JsonText = string | LargeJson;

/**
 * The JSON text of a large value. The text is made when it is sent; until then, only the value itself takes memory. The value is not
 * copied, and MUST NOT change.
 */
export class LargeJson {
  /** The approximate size of the value in memory, in bytes. */
  readonly length: number;
  readonly #value: unknown;
  readonly #before: string;
  readonly #after: string;

  constructor(value: unknown, before = "", after = "", length = memorySizeOf(value)) {
    this.length = length;
    this.#value = value;
    this.#before = before;
    this.#after = after;
  }

  between(before: string, after: string): LargeJson {
    return new LargeJson(this.#value, before + this.#before, this.#after + after, this.length);
  }

  *pieces(): Generator<string> {
    yield this.#before;
    yield* jsonPieces(this.#value);
    yield this.#after;
  }

  toString(): string {
    return `${this.#before}${stringifyJson(this.#value)}${this.#after}`;
  }
}

export const lazyJson = (value: unknown): JsonText =>
  isSmallJson(value) ? stringifyJson(value) : new LargeJson(value);

/** `text` with a prefix and a suffix. */
export const textBetween = (before: string, text: JsonText, after: string): JsonText =>
  typeof text === "string" ? `${before}${text}${after}` : text.between(before, after);

/**
 * Writes a value as `JSON.stringify` does, but in pieces. As one string, a response of megabytes would take twice its size in memory, and
 * block the event loop for hundreds of milliseconds.
 */
export function* jsonPieces(value: unknown): Generator<string> {
  if (isSmallJson(value)) {
    yield JSON.stringify(value) ?? "null";
  } else if (typeof value === "string") {
    yield* textPieces(value);
  } else if (Array.isArray(value)) {
    yield* listPieces(value);
  } else {
    yield* objectPieces(value as { readonly [name: string]: unknown });
  }
}

/**
 * True if the value is written in one piece: a small value, or an object that is never split, such as a class instance or an object with a
 * method `toJSON`.
 */
export function isSmallJson(value: unknown): boolean {
  return roomAfter(value, PIECE_LENGTH) > 0;
}

/**
 * Returns how many of `room` free characters are left after the value is written. 0 or less: the value does not fit, or
 * finding out would take too long.
 */
function roomAfter(value: unknown, room: number): number {
  let left = room - VALUE_LENGTH;
  if (typeof value === "string") return left - value.length;
  if (typeof value !== "object" || value === null) return left;
  if (Array.isArray(value)) {
    if (left <= value.length) return 0;
    for (let i = 0; i < value.length && left > 0; i++) left = roomAfter(value[i], left);
    return left;
  }
  if (!isPlain(value)) return left;
  for (const name in value) {
    const member = (value as { readonly [name: string]: unknown })[name];
    // A method `toJSON` after members that do not fit is not found. No value that is sent has one: values of graphs and clients are copied
    // first, and the copies call `toJSON`.
    if (isToJson(name, member)) return room - VALUE_LENGTH;
    left = roomAfter(member, left - name.length);
    if (left <= 0) return 0;
  }
  return left;
}

function* textPieces(text: string): Generator<string> {
  yield '"';
  for (const slice of slicesOf(text)) yield JSON.stringify(slice).slice(1, -1);
  yield '"';
}

/** Cuts a text into slices, each of which can be encoded on its own. */
export function* slicesOf(text: string): Generator<string> {
  for (let at = 0; at < text.length;) {
    let end = at + PIECE_LENGTH;
    // Keeps the two halves of a surrogate pair together.
    if (isHigh(text.charCodeAt(end - 1))) end++;
    yield text.slice(at, end);
    at = end;
  }
}

const isHigh = (code: number): boolean => code >= 0xd800 && code <= 0xdbff;

function* listPieces(list: readonly unknown[]): Generator<string> {
  let text = "[";
  for (let i = 0; i < list.length; i++) {
    if (i > 0) text += ",";
    const item = list[i];
    if (isSmallJson(item)) text += JSON.stringify(item) ?? "null";
    else {
      yield text;
      text = "";
      yield* jsonPieces(item);
    }
    if (text.length < PIECE_LENGTH) continue;
    yield text;
    text = "";
  }
  yield `${text}]`;
}

function* objectPieces(object: { readonly [name: string]: unknown }): Generator<string> {
  let text = "{";
  let isFirst = true;
  for (const name of Object.keys(object)) {
    const member = object[name];
    let small: string | undefined;
    if (isSmallJson(member)) {
      small = JSON.stringify(member);
      // A value without a JSON form, such as a function: the member is left out.
      if (small === undefined) continue;
    }
    text += `${isFirst ? "" : ","}${JSON.stringify(name)}:`;
    isFirst = false;
    if (small !== undefined) text += small;
    else {
      yield text;
      text = "";
      yield* jsonPieces(member);
    }
    if (text.length < PIECE_LENGTH) continue;
    yield text;
    text = "";
  }
  yield `${text}}`;
}
