import { ClassInstance } from "../model/class-instance.ts";

/** Characters: the approximate size of a piece of JSON. */
const PIECE_LENGTH = 64 * 1024;
/** The most members and entries of a value that counts as small. */
const MAX_SMALL_MEMBERS = 4_000;

/**
 * Writes a value as `JSON.stringify` does, but in pieces. As one string, a response of megabytes would take twice its size in
 * memory and block the event loop for hundreds of milliseconds.
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

/** True if the value can be written in one piece. An object with its own `toJSON` or class always is. */
export function isSmallJson(value: unknown): boolean {
  let left = PIECE_LENGTH;
  const look = (part: unknown): boolean => {
    left -= PIECE_LENGTH / MAX_SMALL_MEMBERS;
    if (typeof part === "string") left -= part.length;
    else if (typeof part === "object" && part !== null && left > 0) {
      if (Array.isArray(part)) return left > part.length && part.every(look);
      if (!isPlain(part)) return true;
      for (const name in part) {
        left -= name.length;
        if (!look((part as { readonly [name: string]: unknown })[name])) return false;
      }
    }
    return left > 0;
  };
  return (
    look(value) || (typeof value === "object" && value !== null && !Array.isArray(value) && !isPlain(value))
  );
}

/** Bytes: the approximate size of a value in memory; too low for very large values. */
export function memorySizeOf(value: unknown): number {
  let nodes = 100_000;
  const look = (part: unknown): number => {
    if (nodes-- <= 0) return 0;
    if (typeof part === "string") return part.length;
    if (typeof part !== "object" || part === null) return 8;
    if (!Array.isArray(part) && !isPlain(part)) return 8;
    let size = 16;
    if (Array.isArray(part)) {
      for (let i = 0; i < part.length && nodes > 0; i++) size += 8 + look(part[i]);
      return size;
    }
    for (const name in part) {
      if (nodes <= 0) break;
      size += 8 + look((part as { readonly [name: string]: unknown })[name]);
    }
    return size;
  };
  return look(value);
}

function isPlain(value: object): boolean {
  if (typeof (value as { toJSON?: unknown }).toJSON === "function") return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null || prototype === ClassInstance.prototype;
}

function* textPieces(text: string): Generator<string> {
  yield '"';
  for (let at = 0; at < text.length;) {
    let end = at + PIECE_LENGTH;
    // Keeps the two halves of a surrogate pair together.
    if (isHigh(text.charCodeAt(end - 1))) end++;
    yield JSON.stringify(text.slice(at, end)).slice(1, -1);
    at = end;
  }
  yield '"';
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
      // The value has no JSON form, so that the member is left out.
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
