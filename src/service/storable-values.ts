import { ServiceError } from "../model/errors.ts";
import { isObject, MAX_DEPTH, toStorable, type JsonObject } from "../model/json.ts";
import { isPlainData } from "../model/plain-data-check.ts";

/**
 * Checks that `value` can be stored, and returns it. The value is copied only if a part of it has to be converted. Most request bodies need
 * no conversion, and no copy is needed to protect them, because nothing else refers to a decoded body.
 * @throws ServiceError `validation.failed`, naming the part that cannot be stored
 */
export function requireStorable(value: unknown, at: string): unknown {
  if (isPlainData(value, MAX_DEPTH, false)) return value;
  try {
    return toStorable(value, at);
  } catch (cause) {
    if (!(cause instanceof ServiceError)) throw cause;
    const fields = [{ at, message: cause.message }];
    throw new ServiceError("validation.failed", cause.message, { cause, fields });
  }
}

/**
 * Like {@link requireStorable}, for an object; a missing value counts as `{}`.
 * @throws ServiceError `validation.failed`, also for other types
 */
export function requireStorableObject(value: unknown, at: string): JsonObject {
  const stored = requireStorable(value ?? {}, at);
  if (isObject(stored)) return stored;
  const fields = [{ at, message: "must be an object" }];
  throw new ServiceError("validation.failed", `${at} must be an object`, { fields });
}
