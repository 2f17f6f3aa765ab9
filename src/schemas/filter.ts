import { isObject, type JsonObject } from "../model/json.ts";
import { invalidField } from "./error-responses.ts";
import { LONGEST_INDEXED } from "../model/thread-search.ts";
import { Type } from "./typebox.ts";

/** Members and list entries that a filter may have in all, at all its levels, and levels below one another. */
const ENTRIES = 1_000;
const LEVELS = 32;
/** Characters of its names and texts in all. Longer ones are not in the index of threads by metadata either. */
const TEXT = LONGEST_INDEXED;

const TOO_LARGE = `must not have more than ${ENTRIES} members and list entries in all, nor more than ${LEVELS} levels, nor more than ${TEXT} characters`;

/** What a search filters metadata, or a state, by. Each record is compared with it, so that it has a bound. */
export const filter = Type.Refine(
  Type.Free(),
  (value: unknown) => isBounded(value),
  () => TOO_LARGE,
);

/** The same of one that came in a query. @throws ServiceError `validation.failed` */
export function checkFilter(value: JsonObject | undefined, at: string): void {
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
