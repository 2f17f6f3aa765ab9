import { ServiceError } from "../model/errors.ts";
import { isObject, MAX_DEPTH } from "../model/json.ts";
import { ClassInstance, NonJsonValue } from "../model/non-json-data.ts";
import { toObjectData } from "./class-instances.ts";

/** The last data copy of each object that was serialised. All servers of a process share this map. */
const shown = new WeakMap<object, unknown>();

/** Objects that were serialised during the current call of `withoutRepeatedComparisons`; null outside such a call. */
let compared: Set<object> | null = null;

/**
 * Runs `work` synchronously. During the call, each object that is serialised is compared with its earlier copy only once. `work` MUST NOT
 * run user code, because changes after that comparison would be missed.
 */
export function withoutRepeatedComparisons(work: () => void): void {
  const before = compared;
  compared ??= new Set();
  try {
    work();
  } finally {
    compared = before;
  }
}

/**
 * Remembers the data copy of an object, which `serialise` returns as long as the object does not change. Copies are remembered for the
 * serialised value and its direct items or members (`depth` 0 and 1) and, at any depth, for objects whose copy is a {@link ClassInstance}.
 * Other objects are part of one of these copies.
 */
export function rememberCopy(live: object, as: unknown, depth: number): void {
  if (depth > 1 && !(as instanceof ClassInstance)) return;
  shown.set(live, as);
  compared?.add(live);
}

/**
 * Serialises a value of a graph's state to data. The result is a copy: later changes of the value do not change it. A class instance is
 * copied in its JSON form. Instances of classes that can be restored (messages, errors, `Send` and a few more) become a {@link
 * ClassInstance}. Values that JSON cannot express (a Date, a Map, NaN) become a {@link NonJsonValue}. Parts that have not changed since
 * they were last serialised keep their earlier copy, so that the items of two lists can be compared by identity.
 * @throws ServiceError `value.unstorable`, with the path, if the value contains itself, is nested too deeply, or has a member `__proto__`
 */
export function serialise(value: unknown): unknown {
  return at(value, 0);
}

function at(value: unknown, depth: number): unknown {
  switch (typeof value) {
    case "string":
    case "boolean":
      return value;
    case "number":
      return Number.isFinite(value) ? value : new NonJsonValue({ kind: "number", data: String(value) });
    case "bigint":
      return new NonJsonValue({ kind: "bigint", data: String(value) });
    case "object":
      return value === null ? null : objectAt(value, depth);
    default:
      // For undefined, functions and symbols, for example as items of a list.
      return new NonJsonValue({ kind: "undefined", data: null });
  }
}

function objectAt(value: object, depth: number): unknown {
  if (value instanceof ClassInstance || value instanceof NonJsonValue) return value;
  if (depth >= MAX_DEPTH)
    throw new Unstorable(`it contains itself, or is nested deeper than ${MAX_DEPTH} levels`, value);
  const before = shown.get(value);
  if (before !== undefined && (compared?.has(value) === true || shows(before, value))) {
    compared?.add(value);
    return before;
  }
  const now = copyOf(value, depth);
  const same = before !== undefined && isEqualData(before, now) ? before : now;
  rememberCopy(value, same, depth);
  return same;
}

const BUILT_IN = [Date, Map, Set, RegExp, ArrayBuffer] as const;

/** Whether an object still equals its copy. False also if only a new copy can tell, as for a Date or a Map. */
function shows(as: unknown, live: unknown): boolean {
  if (typeof live !== "object" || live === null) {
    return live === as && (typeof live !== "number" || Number.isFinite(live));
  }
  if (typeof as !== "object" || as === null) return false;
  if (Array.isArray(live)) {
    if (!Array.isArray(as) || as.length !== live.length) return false;
    for (let i = 0; i < live.length; i++) if (!shows(as[i], live[i])) return false;
    return true;
  }
  if (as instanceof NonJsonValue || !isObject(as) || isBuiltIn(live)) return live === as;
  const { kind, members } = toObjectData(live);
  if (kind !== kindOf(as) || !isObject(members)) return false;
  let count = 0;
  for (const key of Object.keys(members)) {
    const member = members[key];
    if (member === undefined || typeof member === "function" || typeof member === "symbol") continue;
    if (!Object.hasOwn(as, key) || !shows(as[key], member)) return false;
    count++;
  }
  return count === Object.keys(as).length;
}

function copyOf(value: object, depth: number): unknown {
  if (Array.isArray(value)) return value.map((item, i) => within(item, i, depth));
  const builtIn = isBuiltIn(value) ? builtInOf(value, depth) : undefined;
  if (builtIn !== undefined) return builtIn;
  const { kind, members } = toObjectData(value);
  if (!isObject(members)) return at(members, depth + 1);
  const copy: Record<string, unknown> = {};
  for (const key of Object.keys(members)) {
    const member = members[key];
    if (member === undefined || typeof member === "function" || typeof member === "symbol") continue;
    if (key === "__proto__") throw new Unstorable("the key is reserved", null).under(key, member);
    copy[key] = within(member, key, depth);
  }
  return kind === null ? copy : new ClassInstance(kind, copy);
}

function within(part: unknown, key: string | number, depth: number): unknown {
  try {
    return at(part, depth + 1);
  } catch (cause) {
    throw cause instanceof Unstorable ? cause.under(key, part) : cause;
  }
}

function isBuiltIn(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === Object.prototype || prototype === null) return false;
  return BUILT_IN.some((one) => value instanceof one) || ArrayBuffer.isView(value);
}

function builtInOf(value: object, depth: number): NonJsonValue | undefined {
  if (value instanceof Date) {
    const ms = value.getTime();
    return new NonJsonValue({ kind: "date", data: Number.isNaN(ms) ? null : ms });
  }
  if (value instanceof Map) {
    const entries = [...value].map(([key, item]) => [at(key, depth + 1), at(item, depth + 1)] as const);
    return new NonJsonValue({ kind: "map", data: entries });
  }
  if (value instanceof Set) {
    return new NonJsonValue({ kind: "set", data: [...value].map((item) => at(item, depth + 1)) });
  }
  if (value instanceof RegExp) return new NonJsonValue({ kind: "regexp", data: [value.source, value.flags] });
  if (value instanceof ArrayBuffer) return bytesOf("ArrayBuffer", new Uint8Array(value));
  if (!ArrayBuffer.isView(value)) return undefined;
  const { buffer, byteOffset, byteLength } = value;
  const kind = Buffer.isBuffer(value) ? "Uint8Array" : value.constructor.name;
  return bytesOf(kind, new Uint8Array(buffer, byteOffset, byteLength));
}

function bytesOf(kind: string, { buffer, byteOffset, byteLength }: Uint8Array): NonJsonValue {
  const text = Buffer.from(buffer, byteOffset, byteLength).toString("base64");
  return new NonJsonValue({ kind: "bytes", data: [kind, text] });
}

/**
 * Deep equality of two data copies, including their classes. Parts that are the same object are not compared, which makes this fast,
 * because nearly all parts are.
 */
export function isEqualData(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length && a.every((item, i) => isEqualData(item, b[i]));
  }
  if (a instanceof NonJsonValue) {
    if (!(b instanceof NonJsonValue)) return false;
    const [one, other] = [NonJsonValue.of(a), NonJsonValue.of(b)];
    return one.kind === other.kind && isEqualData(one.data, other.data);
  }
  if (!isObject(a) || !isObject(b) || kindOf(a) !== kindOf(b)) return false;
  const keys = Object.keys(a);
  if (keys.length !== Object.keys(b).length) return false;
  return keys.every((key) => Object.hasOwn(b, key) && isEqualData(a[key], b[key]));
}

const kindOf = (value: object): string | null =>
  value instanceof ClassInstance ? ClassInstance.kindOf(value) : null;

/** The largest length of a path in the message of an error, in characters. */
const MAX_PATH_LENGTH = 100;

/**
 * The error for a value that cannot be stored. Each enclosing call adds its key to the path while the error passes through it. If nesting
 * is too deep, and its innermost object is also one of those around it, that object contains itself. The path then ends at its outermost
 * occurrence.
 */
class Unstorable extends ServiceError {
  readonly #what: string;
  /** The object at which nesting became too deep; null for any other error. */
  readonly #origin: object | null;
  readonly #path: string;

  constructor(what: string, origin: object | null, path = "") {
    const where = path.length <= MAX_PATH_LENGTH ? path : `${path.slice(0, MAX_PATH_LENGTH)}...`;
    super(
      "value.unstorable",
      `A value of the state cannot be stored${where === "" ? "" : `, at ${where}`}: ${what}`,
    );
    this.#what = what;
    this.#origin = origin;
    this.#path = path;
  }

  /** The same error with a longer path. `part`: the value under `key`. */
  under(key: string | number, part: unknown): Unstorable {
    const isFoundAgain = this.#origin !== null && part === this.#origin && this.#path !== "";
    const own = typeof key === "number" ? `[${key}]` : `.${key}`;
    return isFoundAgain
      ? new Unstorable("it contains itself", this.#origin, own)
      : new Unstorable(this.#what, this.#origin, own + this.#path);
  }
}
