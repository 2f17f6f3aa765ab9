import { ClassInstance } from "./non-json-data.ts";

/** The largest number of values that are counted by default. Counting this many takes some milliseconds. */
const DEFAULT_MAX_VALUES = 100_000;

/**
 * The approximate size of a value in memory, in bytes. At most `most` values are counted, including nested values; the
 * rest is ignored. Counting a value takes some 20 ns. Pass Infinity for a value that is also decoded or encoded, which
 * takes longer anyway.
 */
export function memorySizeOf(value: unknown, most = DEFAULT_MAX_VALUES): number {
  return sizeOf(value, { values: most });
}

/**
 * The size of one value. `left`: how many values may still be counted. It is passed as a parameter, because a closure for each call of
 * {@link memorySizeOf} would cost more.
 */
function sizeOf(part: unknown, left: { values: number }): number {
  if (left.values-- <= 0) return 0;
  if (typeof part === "string") return part.length;
  if (typeof part !== "object" || part === null) return 8;
  let size = 16;
  if (Array.isArray(part)) {
    for (let i = 0; i < part.length && left.values > 0; i++) size += 8 + sizeOf(part[i], left);
    return size;
  }
  if (!isPlain(part)) return 8;
  for (const name in part) {
    if (left.values <= 0) break;
    const member = (part as { readonly [name: string]: unknown })[name];
    if (isToJson(name, member)) return 8;
    size += 8 + sizeOf(member, left);
  }
  return size;
}

/**
 * True if an object is not an instance of a class, or is a ClassInstance. Then its JSON consists of its members, unless
 * it has a method {@link isToJson | toJSON}.
 */
export function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null || prototype === ClassInstance.prototype;
}

/** True if a member of an object is its method `toJSON`: `JSON.stringify` then writes what the method returns instead of the object. */
export function isToJson(name: string, member: unknown): boolean {
  return typeof member === "function" && name === "toJSON";
}
