import { flatJson } from "./flat-json.ts";
import { toStorable } from "./json.ts";

/** Deeper data are left to the copy, which names what is wrong with them. */
const DEPTH = 64;

/**
 * The JSON text of what {@link toStorable} makes of `value`, on one line. Of plain data, which is nearly all, no copy is made: the
 * text is one. Of small ones it is made by hand, see {@link flatJson}.
 *
 * @throws ServiceError `value.unstorable`, as that does
 */
export function toJsonText(value: unknown, at: string): string {
  return (
    flatJson(value) ?? json(value !== undefined && isPlain(value, DEPTH) ? value : toStorable(value, at))
  );
}

/** JSON text of what has been made storable; `null` in the place of what JSON has no form for. */
export const json = (value: unknown): string => JSON.stringify(value) ?? "null";

/** Does `JSON.stringify` write exactly what `toStorable` would copy, all of it? */
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
    // One without a value is left out, here and there.
    if (key === "__proto__" || (member !== undefined && !isPlain(member, depth - 1))) return false;
  }
  return true;
}
