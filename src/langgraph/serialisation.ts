import { ServiceError } from "../model/errors.ts";
import { isObject, MAX_DEPTH } from "../model/json.ts";
import { Kept, KeptValue } from "../model/class-instance.ts";
import { membersOf } from "./class-instances.ts";

/**
 * What each live object was shown as last. The same for all servers of a process: an object is one object, whoever holds it,
 * and what is remembered of it goes when it goes.
 */
const shown = new WeakMap<object, unknown>();

/** What was shown in this turn; null where none is marked. */
let turn: Set<object> | null = null;

/** Runs `work`, in which no code of a user's runs: what it has shown once is not looked at again. */
export function inOneTurn(work: () => void): void {
  const before = turn;
  turn ??= new Set();
  try {
    work();
  } finally {
    turn = before;
  }
}

/**
 * Remembers what an object was made from, so that it is shown as that for as long as nobody changes it. Only what a list may
 * hold, and messages wherever they are: of what stands deeper, that above it is remembered.
 */
export function remember(live: object, as: unknown, depth: number): void {
  if (depth > 1 && !(as instanceof Kept)) return;
  shown.set(live, as);
  turn?.add(live);
}

/**
 * A value of a graph's state as data: what JSON has a form for is copied, everything else becomes {@link Kept} in its JSON
 * form. The copy shares nothing with the original. An object that has not changed since is shown by the identical copy, and
 * of one that has, its parts that have not: so lists can be told apart item by item.
 * @throws ServiceError `value.unstorable` naming the path: it contains itself, is nested too deep, or has a member `__proto__`
 */
export function show(value: unknown): unknown {
  return at(value, 0);
}

function at(value: unknown, depth: number): unknown {
  switch (typeof value) {
    case "string":
    case "boolean":
      return value;
    case "number":
      return Number.isFinite(value) ? value : new KeptValue({ kind: "number", data: String(value) });
    case "bigint":
      return new KeptValue({ kind: "bigint", data: String(value) });
    case "object":
      return value === null ? null : objectAt(value, depth);
    default:
      // Functions and symbols too, where a place has to be filled.
      return new KeptValue({ kind: "undefined", data: null });
  }
}

function objectAt(value: object, depth: number): unknown {
  if (value instanceof Kept || value instanceof KeptValue) return value;
  if (depth >= MAX_DEPTH)
    throw new Unstorable(`it contains itself, or is nested deeper than ${MAX_DEPTH} levels`);
  const before = shown.get(value);
  if (before !== undefined && (turn?.has(value) === true || shows(before, value))) {
    turn?.add(value);
    return before;
  }
  const now = copyOf(value, depth);
  const same = before !== undefined && isSame(before, now) ? before : now;
  remember(value, same, depth);
  return same;
}

const BUILT_IN = [Date, Map, Set, RegExp, ArrayBuffer] as const;

/** Is an object still as it was shown? False also where only a copy can tell. */
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
  if (as instanceof KeptValue || !isObject(as) || isBuiltIn(live)) return live === as;
  const { kind, members } = membersOf(live);
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
  const { kind, members } = membersOf(value);
  if (!isObject(members)) return at(members, depth + 1);
  const copy: Record<string, unknown> = {};
  for (const key of Object.keys(members)) {
    const member = members[key];
    if (member === undefined || typeof member === "function" || typeof member === "symbol") continue;
    if (key === "__proto__") throw new Unstorable("the key is reserved").under(key);
    copy[key] = within(member, key, depth);
  }
  return kind === null ? copy : new Kept(kind, copy);
}

function within(part: unknown, key: string | number, depth: number): unknown {
  try {
    return at(part, depth + 1);
  } catch (cause) {
    throw cause instanceof Unstorable ? cause.under(key) : cause;
  }
}

function isBuiltIn(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === Object.prototype || prototype === null) return false;
  return BUILT_IN.some((one) => value instanceof one) || ArrayBuffer.isView(value);
}

function builtInOf(value: object, depth: number): KeptValue | undefined {
  if (value instanceof Date) {
    const ms = value.getTime();
    return new KeptValue({ kind: "date", data: Number.isNaN(ms) ? null : ms });
  }
  if (value instanceof Map) {
    const entries = [...value].map(([key, item]) => [at(key, depth + 1), at(item, depth + 1)] as const);
    return new KeptValue({ kind: "map", data: entries });
  }
  if (value instanceof Set) {
    return new KeptValue({ kind: "set", data: [...value].map((item) => at(item, depth + 1)) });
  }
  if (value instanceof RegExp) return new KeptValue({ kind: "regexp", data: [value.source, value.flags] });
  if (value instanceof ArrayBuffer) return bytesOf("ArrayBuffer", new Uint8Array(value));
  if (!ArrayBuffer.isView(value)) return undefined;
  const { buffer, byteOffset, byteLength } = value;
  const kind = Buffer.isBuffer(value) ? "Uint8Array" : value.constructor.name;
  return bytesOf(kind, new Uint8Array(buffer, byteOffset, byteLength));
}

function bytesOf(kind: string, { buffer, byteOffset, byteLength }: Uint8Array): KeptValue {
  const text = Buffer.from(buffer, byteOffset, byteLength).toString("base64");
  return new KeptValue({ kind: "bytes", data: [kind, text] });
}

/** Equal, class by class and member by member. Identical parts, nearly all of them, cost nothing. */
export function isSame(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length && a.every((item, i) => isSame(item, b[i]));
  }
  if (a instanceof KeptValue) {
    if (!(b instanceof KeptValue)) return false;
    const [one, other] = [KeptValue.of(a), KeptValue.of(b)];
    return one.kind === other.kind && isSame(one.data, other.data);
  }
  if (!isObject(a) || !isObject(b) || kindOf(a) !== kindOf(b)) return false;
  const keys = Object.keys(a);
  if (keys.length !== Object.keys(b).length) return false;
  return keys.every((key) => Object.hasOwn(b, key) && isSame(a[key], b[key]));
}

const kindOf = (value: object): string | null => (value instanceof Kept ? Kept.kindOf(value) : null);

/** Its path is made on the way out. */
class Unstorable extends ServiceError {
  readonly #what: string;
  readonly #path: string;

  constructor(what: string, path = "") {
    const where = path.length <= 300 ? path : `${path.slice(0, 300)}...`;
    super(
      "value.unstorable",
      `A value of the state cannot be stored${where === "" ? "" : `, at ${where}`}: ${what}`,
    );
    this.#what = what;
    this.#path = path;
  }

  under(key: string | number): Unstorable {
    return new Unstorable(this.#what, `${typeof key === "number" ? `[${key}]` : `.${key}`}${this.#path}`);
  }
}
