import { flatJson } from "./plain-json-writer.ts";
import { toStorable } from "./json.ts";

/** Levels of nesting. Deeper data are copied by `toStorable`, whose error names the wrong part. */
const DEPTH = 64;

/**
 * The JSON text of `value` as {@link toStorable} copies it, on one line. Nearly all data are plain and need no copy; for
 * small plain data {@link flatJson} writes the text.
 *
 * @throws ServiceError `value.unstorable`, as {@link toStorable} does
 */
export function toJsonText(value: unknown, at: string): string {
  return (
    flatJson(value) ??
    stringifyJson(value !== undefined && isPlain(value, DEPTH) ? value : toStorable(value, at))
  );
}

/** JSON text of storable data; `null` for a value without a JSON form. */
export const stringifyJson = (value: unknown): string => JSON.stringify(value) ?? "null";

/** True when `JSON.stringify` writes exactly what `toStorable` would copy. */
function isPlain(value: unknown, depth: number): boolean {
  switch (typeof value) {
    case "string":
    case "boolean":
      return true;
    case "number":
      return Number.isFinite(value);
    case "object":
      return value === null || isPlainObject(value, depth);
    default:
      return false;
  }
}

function isPlainObject(value: object, depth: number): boolean {
  if (depth === 0 || (value as { toJSON?: unknown }).toJSON !== undefined) return false;
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) if (!isPlain(value[i], depth - 1)) return false;
    return true;
  }
  const proto: unknown = Object.getPrototypeOf(value);
  if (proto !== Object.prototype && proto !== null) return false;
  for (const key of Object.keys(value)) {
    const member = (value as { readonly [key: string]: unknown })[key];
    // `JSON.stringify` and `toStorable` both leave out undefined members.
    if (key === "__proto__" || (member !== undefined && !isPlain(member, depth - 1))) return false;
  }
  return true;
}
