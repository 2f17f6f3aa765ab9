import { MismatchError } from "./mismatch-error.ts";

/** A pattern that accepts each value for which a condition is true. */
class Condition {
  readonly name: string;
  readonly holds: (value: unknown) => boolean;

  constructor(name: string, holds: (value: unknown) => boolean) {
    this.name = name;
    this.holds = holds;
  }

  toJSON(): string {
    return `<${this.name}>`;
  }
}

const matching = (name: string, text: RegExp): unknown =>
  new Condition(name, (value) => typeof value === "string" && text.test(value));

export const aUuid: unknown = matching("UUID", /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
export const aTimestamp: unknown = matching(
  "ISO 8601 timestamp with an offset",
  /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/,
);
export const aText: unknown = matching("text", /./);
export const anything: unknown = new Condition("anything", (value) => value !== undefined);
/** Accepts a missing member or null, because some servers send null and others leave the member out. */
export const nullOrAbsent: unknown = new Condition("null or absent", (value) => value == null);
export const anObject: unknown = new Condition(
  "object",
  (value) => typeof value === "object" && value !== null && !Array.isArray(value),
);
export const aList: unknown = new Condition("array", Array.isArray);

/** Accepts a value that matches at least one of the patterns. */
export const oneOf = (...patterns: readonly unknown[]): unknown =>
  new Condition(`one of ${patterns.map((each) => JSON.stringify(each)).join(", ")}`, (value) =>
    patterns.some((pattern) => mismatch(value, pattern, "") === null),
  );

/** Returns the path of the first place where a value does not match a pattern; null if all of it matches. */
function mismatch(value: unknown, pattern: unknown, path: string): string | null {
  if (pattern instanceof Condition) return pattern.holds(value) ? null : path;
  if (typeof pattern !== "object" || pattern === null) return Object.is(value, pattern) ? null : path;
  if (typeof value !== "object" || value === null) return path;
  if (Array.isArray(pattern)) {
    if (!Array.isArray(value) || value.length !== pattern.length) return path;
  } else if (Array.isArray(value)) return path;
  for (const [key, part] of Object.entries(pattern)) {
    const at = Array.isArray(pattern) ? `${path}[${key}]` : `${path}.${key}`;
    const found = mismatch((value as { readonly [key: string]: unknown })[key], part, at);
    if (found !== null) return found;
  }
  return null;
}

/**
 * Compares a value from a response with a pattern. An object must have the pattern's members, and may have others. An array must have the
 * same length. Other values must be equal.
 * @param what the name of the value in the error
 * @throws MismatchError with the path of the first difference
 */
export function expectMatch(what: string, actual: unknown, expected: unknown): void {
  const path = mismatch(actual, expected, "");
  if (path !== null) throw new MismatchError(`${what}${path} differs`, expected, actual);
}

/** Waits for an SDK call to fail with one of `statuses`. @throws MismatchError if the call succeeds, or fails with another status */
export async function expectRefusal(
  what: string,
  call: Promise<unknown>,
  ...statuses: readonly number[]
): Promise<void> {
  const expected = `refused with ${statuses.join(" or ")}`;
  let answer: unknown;
  try {
    answer = await call;
  } catch (cause) {
    const { status, message } = cause as { readonly status?: number; readonly message?: string };
    if (status !== undefined && statuses.includes(status)) return;
    throw new MismatchError(`${what} is refused otherwise`, expected, message ?? String(cause));
  }
  throw new MismatchError(`${what} is not refused`, expected, answer ?? null);
}
