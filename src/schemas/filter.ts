import { isObject, type JsonObject } from "../model/json.ts";
import { invalidField } from "./error-responses.ts";
import { Type } from "./typebox.ts";

/** Members and list entries that a filter may have in all, at all its levels, and levels below one another. */
const ENTRIES = 1_000;
const LEVELS = 32;

const TOO_LARGE = `must not have more than ${ENTRIES} members and list entries in all, nor more than ${LEVELS} levels`;

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
  const look = (value: unknown, level: number): boolean => {
    if (typeof value !== "object" || value === null) return true;
    if (level > LEVELS) return false;
    const entries = Array.isArray(value) ? value : isObject(value) ? Object.values(value) : [];
    count += entries.length;
    return count <= ENTRIES && entries.every((entry) => look(entry, level + 1));
  };
  return look(filter, 1);
}
