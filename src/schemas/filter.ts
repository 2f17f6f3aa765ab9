import { invalidField } from "../model/errors.ts";
import { isObject, type JsonObject } from "../model/json.ts";
import { MAX_INDEXED_LENGTH } from "../model/thread-search.ts";
import { Type } from "./typebox.ts";

/** The largest number of members and list entries of a filter, on all levels together. */
const ENTRIES = 1_000;
/** The largest number of nesting levels of a filter. */
const LEVELS = 32;
/**
 * The largest total length of all names and strings of a filter, in characters. It equals the largest length of an indexed metadata member,
 * so a longer one could not be found in the index anyway.
 */
const TEXT = MAX_INDEXED_LENGTH;

const TOO_LARGE = `must not have more than ${ENTRIES} members and list entries in all, nor more than ${LEVELS} levels, nor more than ${TEXT} characters`;

/**
 * The schema of a filter over metadata or a state. Its size is limited, because the filter is compared with every record that a search
 * reads.
 */
export const metadataFilterSchema = Type.Refine(
  Type.Free(),
  (value: unknown) => isBounded(value),
  () => TOO_LARGE,
);

/** Checks a filter that came in a query string. @throws ServiceError `validation.failed` */
export function checkFilterSize(value: JsonObject | undefined, at: string): void {
  if (!isBounded(value)) throw invalidField(at, TOO_LARGE);
}

function isBounded(filter: unknown): boolean {
  let count = 0;
  let characters = 0;
  const look = (value: unknown, level: number): boolean => {
    if (typeof value === "string") return (characters += value.length) <= TEXT;
    if (typeof value !== "object" || value === null) return true;
    if (level > LEVELS) return false;
    const entries = Array.isArray(value) ? value : isObject(value) ? Object.values(value) : [];
    count += entries.length;
    if (count > ENTRIES) return false;
    if (!Array.isArray(value)) for (const name of Object.keys(value)) characters += name.length;
    return characters <= TEXT && entries.every((entry) => look(entry, level + 1));
  };
  return look(filter, 1);
}
