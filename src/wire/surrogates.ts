import { invalidField } from "./errors.ts";

/** In JSON text half a pair can stand as an escape alone: bytes that are UTF-8 hold none. */
const ESCAPED = /\\ud[89a-f]/i;
/** In a Unicode pattern whole pairs are no surrogates. */
const HALF = /\p{Surrogate}/u;

/**
 * Refuses texts with half a surrogate pair: they are no Unicode, and many readers of JSON take no answer that holds one.
 * `text`: the JSON that the value was read from. The value's depth is bounded by whoever has parsed it.
 * @throws ServiceError `validation.failed`, naming the first of them
 */
export function checkText(text: string, value: unknown): void {
  if (ESCAPED.test(text)) look(value, "");
}

function look(value: unknown, at: string): void {
  if (typeof value === "string") {
    if (HALF.test(value)) throw invalidField(at === "" ? "body" : at, WHAT);
    return;
  }
  if (typeof value !== "object" || value === null) return;
  for (const [name, member] of Object.entries(value)) {
    const shown = name.slice(0, 100);
    if (HALF.test(name)) throw invalidField(at === "" ? "body" : at, `has a name that ${WHAT}`);
    look(member, Array.isArray(value) ? `${at}[${name}]` : at === "" ? shown : `${at}.${shown}`);
  }
}

const WHAT = "holds half of a surrogate pair, which is no Unicode text";
