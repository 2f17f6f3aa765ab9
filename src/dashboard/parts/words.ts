import { isJson } from "../api/records.ts";

/** Under which of its members a question has its words. */
const WORDS = ["question", "message", "prompt", "description"];

/** The member that says what a question asks; undefined: it is no object, or has none. */
export const wordsIn = (value: unknown): string | undefined =>
  isJson(value) ? WORDS.find((name) => typeof value[name] === "string") : undefined;

/** A value in one line of at most `most` characters. */
export function asText(value: unknown, most = 160): string {
  const words = wordsIn(value);
  const told = isJson(value) && words !== undefined ? value[words] : value;
  const text = (typeof told === "string" ? told : (JSON.stringify(told) ?? ""))
    .replaceAll(/\s+/g, " ")
    .trim();
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}
