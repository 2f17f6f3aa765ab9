import { fieldErrorOf } from "../model/errors.ts";
import { isObject, toStorable, type JsonObject } from "../model/json.ts";

/** Throws the error for an invalid field. @throws ServiceError `state.invalid`, with the field's path in its message and `fields` */
export function refuseField(at: string, what: string): never {
  throw fieldErrorOf("state.invalid", at, what);
}

const isAbsent = (value: unknown): value is null | undefined => value === undefined || value === null;

/** A copy of an object; an empty one if it is absent. */
export function copiedObjectField(value: unknown, at: string): JsonObject {
  if (isAbsent(value)) return {};
  const copy = toStorable(value, at);
  return isObject(copy) ? copy : refuseField(at, "must be an object");
}

/** The list itself, not a copy; an empty one if it is absent. */
export function listField(value: unknown, at: string): readonly unknown[] {
  if (isAbsent(value)) return [];
  return Array.isArray(value) ? value : refuseField(at, "must be an array");
}

/** A string; null if it is absent. Any other value is refused. */
export function optionalStringField(value: unknown, at: string): string | null {
  if (isAbsent(value)) return null;
  return typeof value === "string" ? value : refuseField(at, "must be a string");
}
