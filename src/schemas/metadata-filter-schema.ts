import { invalidField } from "../model/errors.ts";
import { isObject, type JsonObject } from "../model/json.ts";
import { MAX_INDEXED_LENGTH } from "../model/thread-search.ts";
import { Type } from "./typebox.ts";

/** The largest number of object members and list items in a filter, on all levels together. */
const MAX_ENTRIES = 1_000;
/** The largest number of nesting levels in a filter. */
const MAX_LEVELS = 32;
/**
 * The largest total length of all names and strings in a filter, in characters. It equals the largest length of indexed metadata, so a
 * longer text could not be found in the index.
 */
const MAX_TEXT_CHARACTERS = MAX_INDEXED_LENGTH;

const TOO_LARGE = `must not have more than ${MAX_ENTRIES} members and list entries in all, nor more than ${MAX_LEVELS} levels, nor more than ${MAX_TEXT_CHARACTERS} characters`;

/**
 * The schema of a filter on metadata or a state. The size of the filter is limited, because the filter is compared with every record that a
 * search reads.
 */
export const metadataFilterSchema = Type.Refine(
  Type.Free(),
  (value: unknown) => isBounded(value),
  () => TOO_LARGE,
);

/** Checks the size of a filter from a query string. `at` names the parameter in the error. @throws ServiceError `validation.failed` */
export function checkFilterSize(value: JsonObject | undefined, at: string): void {
  if (!isBounded(value)) throw invalidField(at, TOO_LARGE);
}

function isBounded(filter: unknown): boolean {
  let count = 0;
  let characters = 0;
  const look = (value: unknown, level: number): boolean => {
    if (typeof value === "string") return (characters += value.length) <= MAX_TEXT_CHARACTERS;
    if (typeof value !== "object" || value === null) return true;
    if (level > MAX_LEVELS) return false;
    const entries = Array.isArray(value) ? value : isObject(value) ? Object.values(value) : [];
    count += entries.length;
    if (count > MAX_ENTRIES) return false;
    if (!Array.isArray(value)) for (const name of Object.keys(value)) characters += name.length;
    return characters <= MAX_TEXT_CHARACTERS && entries.every((entry) => look(entry, level + 1));
  };
  return look(filter, 1);
}
