import { isJsonRecord } from "../api/records.ts";

/** Members of a question that may contain its text. */
const TEXT_MEMBERS = ["question", "message", "prompt", "description"];

/** Returns the name of the member that contains a question's text; undefined if the value is no object or has no such member. */
export const findQuestionTextKey = (value: unknown): string | undefined =>
  isJsonRecord(value) ? TEXT_MEMBERS.find((name) => typeof value[name] === "string") : undefined;

/** Formats a value as one line of at most `most` characters. */
export function toLine(value: unknown, most = 160): string {
  const words = findQuestionTextKey(value);
  const shown = isJsonRecord(value) && words !== undefined ? value[words] : value;
  const text = (typeof shown === "string" ? shown : (JSON.stringify(shown) ?? ""))
    .replaceAll(/\s+/g, " ")
    .trim();
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

/** Formats an error. The name `Error` is left out, because it adds nothing. */
export const errorLine = (name: string, message: string): string =>
  name === "Error" || name === "" ? message : `${name}: ${message}`;

/** Shortens an id to its last characters. The first characters are the time, which many ids share. */
export const idSuffix = (id: string): string => id.slice(-8);
