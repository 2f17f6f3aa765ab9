import { invalidField } from "../model/errors.ts";

/**
 * Matches the JSON escape of half of a surrogate pair, even if the escape of the other half follows. In JSON text that is valid UTF-8, a
 * single half can only occur as an escape.
 */
const ESCAPED = /\\ud[89a-f]/i;
/** Matches a single half of a surrogate pair. With the flag `u`, a complete pair does not match. */
const HALF = /\p{Surrogate}/u;

/**
 * Refuses a value with a string that contains a single half of a surrogate pair. Such a string is not valid Unicode, and many JSON parsers
 * reject a response that contains it. `text`: the JSON from which the value was parsed.
 * @throws ServiceError `validation.failed`; it names the first such string
 */
export function checkSurrogates(text: string, value: unknown): void {
  if (ESCAPED.test(text)) refuseLoneSurrogates(value);
}

/** Whether a value contains a string with a single half of a surrogate pair. `text`: the JSON from which the value was parsed. */
export const hasLoneSurrogate = (text: string, value: unknown): boolean =>
  ESCAPED.test(text) && halfIn(value) !== undefined;

/** Like {@link checkSurrogates}, for a value whose JSON is known to match {@link ESCAPED}. */
export function refuseLoneSurrogates(value: unknown): void {
  const found = halfIn(value);
  if (found === undefined) return;
  const at = found.at.replace(/^\./, "");
  throw invalidField(at === "" ? "body" : at, found.isName ? `has a name that ${WHAT}` : WHAT);
}

interface Half {
  /** The path of the string. Paths are built only when a lone surrogate is found, because a value may have millions of members. */
  readonly at: string;
  /** True if the lone surrogate is in the name of a member at this path, false if it is in the string at this path. */
  readonly isName: boolean;
}

// Recursive, because the depth of the value was limited when it was parsed.
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
