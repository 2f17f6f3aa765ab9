import { fieldErrorOf } from "../model/errors.ts";
import { isObject, toStorable, type JsonObject } from "../model/json.ts";

/** Throws the error for an invalid field. @throws ServiceError `state.invalid`, with the field's path in its message and `fields` */
export function throwInvalidField(at: string, what: string): never {
  throw fieldErrorOf("state.invalid", at, what);
}

const isAbsent = (value: unknown): value is null | undefined => value === undefined || value === null;

/** Returns a copy of the object `value`; an empty object if `value` is null or undefined. Refuses any other value. */
export function copiedObjectField(value: unknown, at: string): JsonObject {
  if (isAbsent(value)) return {};
  const copy = toStorable(value, at);
  return isObject(copy) ? copy : throwInvalidField(at, "must be an object");
}

/**
 * Returns the array `value` itself, not a copy; an empty array if `value` is null or undefined. Refuses any other
 * value.
 */
export function listField(value: unknown, at: string): readonly unknown[] {
  if (isAbsent(value)) return [];
  return Array.isArray(value) ? value : throwInvalidField(at, "must be an array");
}

/** Returns the string `value`; null if `value` is null or undefined. Refuses any other value. */
export function optionalStringField(value: unknown, at: string): string | null {
  if (isAbsent(value)) return null;
  return typeof value === "string" ? value : throwInvalidField(at, "must be a string");
}
