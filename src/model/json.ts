import { ServiceError } from "./errors.ts";
import { ClassInstance, NonJsonValue } from "./non-json-data.ts";
import { describeInstance } from "./describe-instance.ts";

/** A plain JSON object. Members of a graph's state may also be a {@link ClassInstance} or a {@link NonJsonValue}. */
export type JsonObject = { readonly [key: string]: unknown };

/**
 * An empty object to spread first in a literal that joins objects. In V8 before 12, a literal that begins with the spread of
 * an object with members gets a hidden class of its own, which costs 8 us, and more for each read of the object.
 */
export const EMPTY_OBJECT: JsonObject = Object.freeze({});

/** The most levels of nesting of stored data. Deeper data would overflow the stack of a recursive encoder. */
export const MAX_DEPTH = 256;

/** The longest text that is stored, in bytes of UTF-8. V8 before Node 24 cannot decode a longer string. */
export const MAX_TEXT_BYTES = 0x1fff_ffe8;

export function isTooLong(text: string): boolean {
  // A UTF-16 unit takes at most three bytes of UTF-8, so shorter texts need not be measured.
  return text.length > MAX_TEXT_BYTES / 3 && Buffer.byteLength(text) > MAX_TEXT_BYTES;
}

export function isObject(value: unknown): value is JsonObject {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  const proto: unknown = Object.getPrototypeOf(value);
  return proto === Object.prototype || proto === null || proto === ClassInstance.prototype;
}

/**
 * A deep copy of `value`, for storage. As in `JSON.stringify`, `undefined` members are left out and `toJSON` is called. A
 * {@link ClassInstance} is copied as a ClassInstance; a {@link NonJsonValue} cannot change, and is returned as it is. The original may be
 * changed afterwards.
 *
 * @param at names the value in the error, e.g. `update` or `input`
 * @throws ServiceError `value.unstorable` with the path of the first part that cannot be stored: a function, symbol, bigint, NaN, Infinity,
 *   invalid Date, cycle, Map, Set, typed array, other class instance, a key `__proto__`, data nested too deeply, or a text of more than 512
 *   MiB
 */
export function toStorable(value: unknown, at: string): unknown {
  return copy(value, at, []);
}

/** The most characters of a path in an error message. The keys in a path come from clients, and the message is stored with a run. */
const MAX_PATH_CHARACTERS = 300;

function refuse(at: string, what: string): never {
  const path = at.length <= MAX_PATH_CHARACTERS ? at : `${at.slice(0, MAX_PATH_CHARACTERS)}...`;
  const message = `cannot be stored: ${what}`;
  throw new ServiceError("value.unstorable", `${path} ${message}`, { fields: [{ at: path, message }] });
}

function copy(value: unknown, at: string, above: object[]): unknown {
  switch (typeof value) {
    case "string":
      return isTooLong(value) ? refuse(at, "it is a text of more than 512 MiB") : value;
    case "boolean":
      return value;
    case "number":
      return Number.isFinite(value) ? value : refuse(at, `${value} is not a finite number`);
    case "undefined":
      return null;
    case "object":
      return value === null ? null : copyObject(value, at, above);
    case "bigint":
    case "symbol":
    case "function":
      return refuse(at, `it is a ${typeof value}`);
    default:
      return refuse(at, "it is of an unknown type");
  }
}

function copyObject(value: object, at: string, above: object[]): unknown {
  if (above.length >= MAX_DEPTH) refuse(at, `it is nested deeper than ${MAX_DEPTH} levels`);
  if (above.includes(value)) refuse(at, "it contains itself");
  if (value instanceof NonJsonValue) return value;
  // The `toJSON` of an invalid Date returns null, so the value would be lost silently.
  if (value instanceof Date && Number.isNaN(value.getTime())) refuse(at, "it is an invalid Date");
  const { toJSON } = value as { toJSON?: unknown };
  above.push(value);
  try {
    if (typeof toJSON === "function") return copy(toJSON.call(value, ""), at, above);
    if (Array.isArray(value)) {
      const list: unknown[] = [];
      for (let i = 0; i < value.length; i++) list.push(copy(value[i], `${at}[${i}]`, above));
      return list;
    }
    if (!isObject(value)) refuse(at, `it is ${describeInstance(value)}`);
    const object: Record<string, unknown> = {};
    for (const key of Object.keys(value)) {
      // Assigning this key would set a prototype instead of storing data.
      if (key === "__proto__") refuse(`${at}.__proto__`, "the key is reserved");
      const member = value[key];
      if (member !== undefined) object[key] = copy(member, `${at}.${key}`, above);
    }
    return value instanceof ClassInstance ? new ClassInstance(ClassInstance.kindOf(value), object) : object;
  } finally {
    above.pop();
  }
}

/** A copy of `object` that has only the members with these names. Inherited members are left out. */
export function pick(object: JsonObject, names: readonly string[]): JsonObject {
  return Object.fromEntries(
    names.filter((name) => Object.hasOwn(object, name)).map((name) => [name, object[name]]),
  );
}

/**
 * A copy of `object` without one member. An object made by `delete`, or by a rest pattern, takes several microseconds more, and so does each
 * later copy of it.
 */
export function withoutMember<T>(object: { readonly [name: string]: T }, left: string): Record<string, T> {
  const rest: Record<string, T> = {};
  for (const name of Object.keys(object)) if (name !== left) rest[name] = object[name] as T;
  return rest;
}

/**
 * The most comparisons of values that matching one record with a filter may take. A million comparisons take tens of
 * milliseconds.
 */
const MAX_COMPARISONS = 1_000_000;
/** Lists of up to this many items are compared by searching; longer ones with a set. */
const MAX_SEARCHED_LENGTH = 8;

/** True when two values are equal as JSON. The order of members does not matter. */
export function isSameJson(one: unknown, other: unknown): boolean {
  if (Array.isArray(one) && Array.isArray(other))
    return one.length === other.length && one.every((item, index) => isSameJson(item, other[index]));
  if (!isObject(one) || !isObject(other)) return one === other;
  const keys = Object.keys(one);
  return (
    keys.length === Object.keys(other).length &&
    keys.every((key) => Object.hasOwn(other, key) && isSameJson(one[key], other[key]))
  );
}

/**
 * True when `whole` contains `part`, as it is defined for the filters of searches: an object must have the members of
 * `part`, an array its items in any order; other values must be equal.
 * @throws ServiceError `validation.failed` when it takes too long, because the items of long lists of objects or lists
 *   are compared pairwise
 */
export function contains(whole: unknown, part: unknown): boolean {
  return holds(whole, part, { left: MAX_COMPARISONS });
}

function holds(whole: unknown, part: unknown, comparisons: { left: number }): boolean {
  if (--comparisons.left < 0) {
    const message = `The filter takes more than ${MAX_COMPARISONS} comparisons with one record: ask for fewer list entries that are objects or lists`;
    throw new ServiceError("validation.failed", message);
  }
  if (Array.isArray(part)) return Array.isArray(whole) && holdsAll(whole, part, comparisons);
  if (isObject(part)) {
    if (!isObject(whole)) return false;
    return Object.keys(part).every(
      (key) => Object.hasOwn(whole, key) && holds(whole[key], part[key], comparisons),
    );
  }
  return whole === part;
}

function holdsAll(
  whole: readonly unknown[],
  part: readonly unknown[],
  comparisons: { left: number },
): boolean {
  const plain = part.length <= MAX_SEARCHED_LENGTH ? [] : part.filter((item) => !isNested(item));
  const missing = new Set(plain);
  for (let i = 0; i < whole.length && missing.size > 0; i++) missing.delete(whole[i]);
  if (missing.size > 0) return false;
  const others = plain.length === 0 ? part : part.filter(isNested);
  return others.every((item) =>
    isNested(item) ? whole.some((other) => holds(other, item, comparisons)) : whole.includes(item),
  );
}

const isNested = (value: unknown): boolean => typeof value === "object" && value !== null;
