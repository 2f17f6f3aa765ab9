import { isObject, type JsonObject } from "../model/json.ts";
import { Kept, KeptValue } from "../model/class-instance.ts";
import { instanceOf } from "./class-instances.ts";
import type { Library } from "./user-library.ts";
import { remember } from "./serialisation.ts";

/**
 * Restores a value that `show` made into data: a copy with objects of the library's classes. An object whose class is no
 * longer known becomes plain data. As long as the copy is not modified, `show` returns the identical data for it.
 */
export function revive(library: Library, value: unknown, depth = 0): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (value instanceof KeptValue) return reviveValue(library, value, depth);
  if (Array.isArray(value)) {
    const list = value.map((item) => revive(library, item, depth + 1));
    remember(list, value, depth);
    return list;
  }
  if (!isObject(value)) return value;
  const members: Record<string, unknown> = {};
  for (const key of Object.keys(value)) members[key] = revive(library, value[key], depth + 1);
  const made = value instanceof Kept ? instanceOf(library, Kept.kindOf(value), members) : undefined;
  remember(made ?? members, value, depth);
  return made ?? members;
}

/** Restores each member of an object. */
export function reviveAll(library: Library, values: JsonObject): Record<string, unknown> {
  const made: Record<string, unknown> = {};
  for (const key of Object.keys(values)) made[key] = revive(library, values[key]);
  return made;
}

const VIEWS = {
  ArrayBuffer: undefined,
  BigInt64Array,
  BigUint64Array,
  DataView,
  Float32Array,
  Float64Array,
  Int16Array,
  Int32Array,
  Int8Array,
  Uint16Array,
  Uint32Array,
  Uint8Array,
  Uint8ClampedArray,
} as const;

function reviveValue(library: Library, kept: KeptValue, depth: number): unknown {
  const { kind, data } = KeptValue.of(kept);
  switch (kind) {
    case "undefined":
      return undefined;
    case "number":
      return Number(data);
    case "bigint":
      return BigInt(data);
    default: {
      const made = reviveObject(library, kept);
      remember(made, kept, depth);
      return made;
    }
  }
}

function reviveObject(library: Library, kept: KeptValue): object {
  const { kind, data } = KeptValue.of(kept);
  switch (kind) {
    case "date":
      return new Date(data ?? Number.NaN);
    case "regexp":
      return new RegExp(data[0], data[1]);
    case "map":
      return new Map(data.map(([key, item]) => [revive(library, key), revive(library, item)]));
    case "set":
      return new Set(data.map((item) => revive(library, item)));
    case "bytes": {
      const bytes = Uint8Array.from(Buffer.from(data[1], "base64"));
      const view = Object.hasOwn(VIEWS, data[0]) ? data[0] : "Uint8Array";
      const View = VIEWS[view as keyof typeof VIEWS] as (new (buffer: ArrayBuffer) => object) | undefined;
      return View === undefined ? bytes.buffer : new View(bytes.buffer);
    }
    default:
      throw new TypeError(`A ${kind} is no object`);
  }
}
