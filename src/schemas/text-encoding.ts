import { invalidField } from "./error-responses.ts";

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
  if (ESCAPED.test(text)) refuseHalves(value);
}

/** Is there such a text? `text`: the JSON that the value was read from. */
export const hasHalf = (text: string, value: unknown): boolean =>
  ESCAPED.test(text) && halfIn(value) !== undefined;

/** The same of a value that is known to hold an escape. Throws as {@link checkText} does. */
export function refuseHalves(value: unknown): void {
  const found = halfIn(value);
  if (found === undefined) return;
  const at = found.at.replace(/^\./, "");
  throw invalidField(at === "" ? "body" : at, found.isName ? `has a name that ${WHAT}` : WHAT);
}

interface Half {
  /** The path to it, put together only once there is one: a value may have millions of members. */
  readonly at: string;
  /** It is in the name of a member there. */
  readonly isName: boolean;
}

function halfIn(value: unknown): Half | undefined {
  if (typeof value === "string") return HALF.test(value) ? { at: "", isName: false } : undefined;
  if (typeof value !== "object" || value === null) return undefined;
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) {
      const found = halfIn(value[i]);
      if (found !== undefined) return { ...found, at: `[${i}]${found.at}` };
    }
    return undefined;
  }
  for (const name of Object.keys(value)) {
    if (HALF.test(name)) return { at: "", isName: true };
    const found = halfIn((value as Record<string, unknown>)[name]);
    if (found !== undefined) return { ...found, at: `.${name.slice(0, 100)}${found.at}` };
  }
  return undefined;
}

const WHAT = "holds half of a surrogate pair, which is no Unicode text";
