import { isPlain, isToJson } from "../model/memory-size.ts";

/** Characters: the approximate size of a piece of JSON. */
const PIECE_LENGTH = 64 * 1024;
/** Characters that each value counts for besides its own: a small one has 4,000 members and entries at most. */
const VALUE_LENGTH = PIECE_LENGTH / 4_000;

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
  return roomAfter(value, PIECE_LENGTH) > 0;
}

/** The characters that are left of `room` after a value is written; 0 or less if it does not fit, or not enough is left to find out. */
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
    if (isToJson(name, member)) return room - VALUE_LENGTH;
    left = roomAfter(member, left - name.length);
    if (left <= 0) return 0;
  }
  return left;
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
