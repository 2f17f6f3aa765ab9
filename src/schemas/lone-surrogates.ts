import { invalidField } from "../model/errors.ts";

/** The escape of half of a surrogate pair. JSON text that is valid UTF-8 can contain such a half only as an escape. */
const ESCAPED = /\\ud[89a-f]/i;
/** Half of a surrogate pair. With the flag `u`, a complete pair does not match. */
const HALF = /\p{Surrogate}/u;

/**
 * Refuses strings with half of a surrogate pair: they are not Unicode, and many JSON parsers reject an answer
 * that contains one. `text`: the JSON that the value was parsed from. The value is searched recursively; its
 * depth was limited when it was parsed.
 * @throws ServiceError `validation.failed`, naming the first such string
 */
export function checkSurrogates(text: string, value: unknown): void {
  if (ESCAPED.test(text)) refuseLoneSurrogates(value);
}

/** Whether a value contains a string with half of a surrogate pair. `text`: the JSON that the value was parsed from. */
export const hasLoneSurrogate = (text: string, value: unknown): boolean =>
  ESCAPED.test(text) && halfIn(value) !== undefined;

/**
 * Like {@link checkSurrogates}, for a value whose JSON is known to contain the escape of half of a surrogate pair.
 * Throws as {@link checkSurrogates} does.
 */
export function refuseLoneSurrogates(value: unknown): void {
  const found = halfIn(value);
  if (found === undefined) return;
  const at = found.at.replace(/^\./, "");
  throw invalidField(at === "" ? "body" : at, found.isName ? `has a name that ${WHAT}` : WHAT);
}

interface Half {
  /** The path of the string with the half. It is built only when such a string is found, because a value may have millions of members. */
  readonly at: string;
  /** True if the string is the name of the member at this path, false if it is the value. */
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
