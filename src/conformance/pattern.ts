import { MismatchError } from "./mismatch-error.ts";

/** A part of a pattern that accepts each value for which a condition holds. */
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
/** Accepts a missing member or null: some servers leave a member out where others send null. */
export const nullOrAbsent: unknown = new Condition("null or absent", (value) => value == null);
export const anObject: unknown = new Condition(
  "object",
  (value) => typeof value === "object" && value !== null && !Array.isArray(value),
);
export const aList: unknown = new Condition("array", Array.isArray);

/** Accepts a value that matches one of these patterns. */
export const oneOf = (...patterns: readonly unknown[]): unknown =>
  new Condition(`one of ${patterns.map((each) => JSON.stringify(each)).join(", ")}`, (value) =>
    patterns.some((pattern) => mismatch(value, pattern, "") === null),
  );

/** Returns the path of the first part of a value that does not match; null if the whole value matches. */
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
 * Compares an answer with a pattern. An object must have the pattern's members, and may have others; an array must have the same length;
 * everything else must be equal.
 * @param what names the answer in the message
 * @throws MismatchError with the path of the first part that does not match
 */
export function expectMatch(what: string, actual: unknown, expected: unknown): void {
  const path = mismatch(actual, expected, "");
  if (path !== null) throw new MismatchError(`${what}${path} differs`, expected, actual);
}

/**
 * Waits for the SDK call to fail with one of these statuses.
 * @throws MismatchError when the call succeeds, or fails with another status
 */
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
