import { stringifyPlainJson } from "./plain-json-writer.ts";
import { isPlainData } from "./plain-data-check.ts";
import { toStorable } from "./json.ts";

/**
 * The most levels of nesting of data that are encoded without a copy. Deeper data are copied by `toStorable`, whose
 * error names the part that cannot be stored.
 */
const MAX_UNCOPIED_DEPTH = 64;

/**
 * The JSON text, on one line, of the copy that {@link toStorable} makes of `value`. Nearly all data are plain and need no copy;
 * for small plain data {@link stringifyPlainJson} writes the text.
 *
 * @throws ServiceError `value.unstorable`, as {@link toStorable} does
 */
export function toJsonText(value: unknown, at: string): string {
  return (
    stringifyPlainJson(value) ??
    stringifyJson(
      value !== undefined && isPlainData(value, MAX_UNCOPIED_DEPTH, true) ? value : toStorable(value, at),
    )
  );
}

/** JSON text of storable data; `null` for a value without a JSON form. */
export const stringifyJson = (value: unknown): string => JSON.stringify(value) ?? "null";
