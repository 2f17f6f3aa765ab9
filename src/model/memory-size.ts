import { ClassInstance } from "./class-instance.ts";

/** The default number of values to look at, which takes some milliseconds. */
const MOST = 100_000;

/**
 * The approximate size of a value in memory, in bytes. It looks at `most` values, including nested ones, and ignores the rest. Each takes
 * some 20 ns. Pass Infinity for a value that is also decoded or encoded, which takes longer anyway.
 */
export function memorySizeOf(value: unknown, most = MOST): number {
  return sizeOf(value, { values: most });
}

/**
 * `left`: counts the values that may still be looked at. It is a parameter because each call would otherwise create a closure, several
 * times a run.
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

/** True if an object has no class of its own. It is written member by member, unless one {@link isToJson | replaces it}. */
export function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null || prototype === ClassInstance.prototype;
}

/** True if a member of an object is a method that `JSON.stringify` calls, to write what it returns in the object's place. */
export function isToJson(name: string, member: unknown): boolean {
  return typeof member === "function" && name === "toJSON";
}
