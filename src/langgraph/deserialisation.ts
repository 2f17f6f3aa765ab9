import { isObject, type JsonObject } from "../model/json.ts";
import { ClassInstance, NonJsonValue } from "../model/non-json-data.ts";
import { createInstance } from "./class-instances.ts";
import type { LangGraphLibrary } from "./user-library.ts";
import { rememberCopy } from "./serialisation.ts";

/**
 * Restores a copy of a value from the data that `serialise` has made of it. Objects get the library's classes again. As long as the copy is
 * not modified, `serialise` returns the identical data for it. Exception: an object whose class is unknown becomes plain data.
 */
export function deserialise(library: LangGraphLibrary, value: unknown, depth = 0): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (value instanceof NonJsonValue) return reviveValue(library, value, depth);
  if (Array.isArray(value)) {
    const list = value.map((item) => deserialise(library, item, depth + 1));
    rememberCopy(list, value, depth);
    return list;
  }
  if (!isObject(value)) return value;
  const members: Record<string, unknown> = {};
  for (const key of Object.keys(value)) members[key] = deserialise(library, value[key], depth + 1);
  const made =
    value instanceof ClassInstance
      ? createInstance(library, ClassInstance.kindOf(value), members)
      : undefined;
  rememberCopy(made ?? members, value, depth);
  return made ?? members;
}

export function deserialiseMembers(library: LangGraphLibrary, values: JsonObject): Record<string, unknown> {
  const made: Record<string, unknown> = {};
  for (const key of Object.keys(values)) made[key] = deserialise(library, values[key]);
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

function reviveValue(library: LangGraphLibrary, stored: NonJsonValue, depth: number): unknown {
  const { kind, data } = NonJsonValue.of(stored);
  switch (kind) {
    case "undefined":
      return undefined;
    case "number":
      return Number(data);
    case "bigint":
      return BigInt(data);
    default: {
      const made = reviveObject(library, stored);
      rememberCopy(made, stored, depth);
      return made;
    }
  }
}

function reviveObject(library: LangGraphLibrary, stored: NonJsonValue): object {
  const { kind, data } = NonJsonValue.of(stored);
  switch (kind) {
    case "date":
      return new Date(data ?? Number.NaN);
    case "regexp":
      return new RegExp(data[0], data[1]);
    case "map":
      return new Map(data.map(([key, item]) => [deserialise(library, key), deserialise(library, item)]));
    case "set":
      return new Set(data.map((item) => deserialise(library, item)));
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
