import { ServiceError } from "../model/errors.ts";
import { isObject, MAX_DEPTH, toStorable, type JsonObject } from "../model/json.ts";

/**
 * Checks that `value` can be stored, and returns it. A decoded body belongs to nobody else and is mostly storable as it is, so it is copied
 * only when something in it must change.
 * @throws ServiceError `validation.failed`, naming the part that cannot be stored
 */
export function storable(value: unknown, at: string): unknown {
  if (isStorable(value, 0)) return value;
  try {
    return toStorable(value, at);
  } catch (cause) {
    if (!(cause instanceof ServiceError)) throw cause;
    const fields = [{ at, message: cause.message }];
    throw new ServiceError("validation.failed", cause.message, { cause, fields });
  }
}

/** @throws ServiceError `validation.failed`, also when the value is not an object */
export function storableObject(value: unknown, at: string): JsonObject {
  const stored = storable(value ?? {}, at);
  if (isObject(stored)) return stored;
  const fields = [{ at, message: "must be an object" }];
  throw new ServiceError("validation.failed", `${at} must be an object`, { fields });
}

function isStorable(value: unknown, depth: number): boolean {
  switch (typeof value) {
    case "string":
    case "boolean":
      return true;
    case "number":
      return Number.isFinite(value);
    case "object":
      break;
    default:
      return false;
  }
  if (value === null) return true;
  if (depth >= MAX_DEPTH) return false;
  if (Array.isArray(value)) {
    for (const item of value) if (!isStorable(item, depth + 1)) return false;
    return true;
  }
  if (!isObject(value)) return false;
  for (const key of Object.keys(value)) {
    if (key === "__proto__" || !isStorable(value[key], depth + 1)) return false;
  }
  return true;
}
