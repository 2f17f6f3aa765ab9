import { isJsonRecord } from "../api/records.ts";

/** Names of members of a question's value that may contain the question as text. */
const TEXT_MEMBERS = ["question", "message", "prompt", "description"];

/**
 * Returns the name of the member that contains a question's text; undefined if the value is not an object or has no
 * such member.
 */
export const findQuestionTextKey = (value: unknown): string | undefined =>
  isJsonRecord(value) ? TEXT_MEMBERS.find((name) => typeof value[name] === "string") : undefined;

/** Matches the characters that turn the direction of the text after them, such as U+202E (right-to-left override). */
const DIRECTION_CONTROLS = /[\u202A-\u202E\u2066-\u2069]/g;

/**
 * Removes the characters that turn the direction of the text after them. For texts that are put into a longer text, the
 * rest of which they would reorder.
 */
export const withoutDirectionControls = (text: string): string => text.replaceAll(DIRECTION_CONTROLS, "");

/**
 * Formats a value as one line of at most `most` characters. For an object with a question's text, only this text is
 * shown.
 */
export function toOneLine(value: unknown, most = 160): string {
  const words = findQuestionTextKey(value);
  const shown = isJsonRecord(value) && words !== undefined ? value[words] : value;
  const text = withoutDirectionControls(typeof shown === "string" ? shown : (JSON.stringify(shown) ?? ""))
    .replaceAll(/\s+/g, " ")
    .trim();
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

/** Formats an error as its name and message. The name `Error` is left out, because it adds nothing. */
export const errorLine = (name: string, message: string): string =>
  name === "Error" || name === "" ? message : `${name}: ${message}`;

/** Shortens a UUID to its last 8 characters. The first characters encode the time, so many ids share them. */
export const idSuffix = (id: string): string => id.slice(-8);
