import { hasActorReference, REFERENCE_KEY } from "./stored-actor-references.ts";
import { toPlainError } from "../model/errors.ts";
import { isObject, type JsonObject, MAX_DEPTH, toStorable } from "../model/json.ts";

/** The most characters of JSON that the members of an error and of its causes have together. Members beyond that are left out. */
const MAX_MEMBER_CHARACTERS = 16_384;

/** The most causes that are kept of an error, each the cause of the one before. */
const MAX_CAUSES = 5;

/** What a promise actor has thrown, in its stored form. */
export interface StoredThrown {
  /** The name of an Error, and its message. Of another value, a text that describes it. */
  readonly error: string;
  readonly message: string;
  /** The Error's own members that can be stored, such as `code`. */
  readonly members?: JsonObject;
  readonly cause?: StoredThrown;
  /** An object with the value that was thrown, if it is no Error; `{}` for undefined. Absent if the value cannot be stored. */
  readonly thrown?: { readonly value?: unknown };
}

/** What may still be stored of an error and its causes. */
interface Budget {
  characters: number;
  causes: number;
}

/** Converts what was thrown to its stored form. {@link fromStoredThrown} is the reverse. */
export function toStoredThrown(
  thrown: unknown,
  budget: Budget = { characters: MAX_MEMBER_CHARACTERS, causes: MAX_CAUSES },
): StoredThrown {
  const plain = toPlainError(thrown);
  if (thrown === undefined) return { ...plain, thrown: {} };
  if (!isError(thrown)) {
    const value = storableOrUndefined(() => thrown);
    return value === undefined ? plain : { ...plain, thrown: { value } };
  }
  const members: Record<string, unknown> = {};
  for (const key of Object.keys(thrown)) {
    if (UNLISTED.has(key)) continue;
    const value = storableOrUndefined(() => (thrown as unknown as JsonObject)[key]);
    if (value === undefined) continue;
    const size = key.length + JSON.stringify(value).length;
    if (size > budget.characters) continue;
    budget.characters -= size;
    members[key] = value;
  }
  return { ...plain, ...(Object.keys(members).length > 0 && { members }), ...causeOf(thrown, budget) };
}

/** Members of an Error that are no data of its own, or that are stored otherwise. */
const UNLISTED: ReadonlySet<string> = new Set([
  "name",
  "message",
  "stack",
  "cause",
  "__proto__",
  REFERENCE_KEY,
]);

function causeOf(error: Error, budget: Budget): Pick<StoredThrown, "cause"> {
  if (error.cause === undefined || budget.causes === 0) return {};
  budget.causes--;
  if (isError(error.cause)) return { cause: toStoredThrown(error.cause, budget) };
  const cause = toStoredThrown(error.cause, budget);
  const size = JSON.stringify(cause).length;
  if (size > budget.characters) return {};
  budget.characters -= size;
  return { cause };
}

/** Converts the stored form of something that was thrown to the value that the machine gets as `event.error`. */
export function fromStoredThrown(stored: unknown): unknown {
  const { error, message, members, cause, thrown }: Partial<StoredThrown> = isObject(stored)
    ? stored
    : toPlainError(stored);
  if (isObject(thrown)) return thrown["value"];
  const made =
    cause === undefined ? new Error(message) : new Error(message, { cause: fromStoredThrown(cause) });
  if (isObject(members)) Object.assign(made, members);
  // As in an Error that JavaScript has made, the name is not one of the members that are listed.
  const value = error ?? "Error";
  return Object.defineProperty(made, "name", {
    value,
    writable: true,
    configurable: true,
    enumerable: false,
  });
}

/**
 * Makes a copy for storage, as `toStorable` does. An Error in the value becomes an object with its name, its message, its own members and
 * its cause, as far as they can be stored.
 * @throws ServiceError `value.unstorable` with the path of the first part that cannot be stored
 */
export function toStorableWithErrors(value: unknown, at: string): unknown {
  try {
    return toStorable(value, at);
  } catch {
    // Errors in a context are rare, so they are only looked for once the value is refused.
    return toStorable(withPlainErrors(value, []), at);
  }
}

function withPlainErrors(value: unknown, above: readonly object[]): unknown {
  if (typeof value !== "object" || value === null || above.length > MAX_DEPTH || above.includes(value))
    return value;
  if (typeof (value as { toJSON?: unknown }).toJSON === "function") return value;
  if (isError(value)) return errorAsObject(toStoredThrown(value));
  const inner = [...above, value];
  if (Array.isArray(value)) return value.map((one) => withPlainErrors(one, inner));
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, withPlainErrors(one, inner)]));
}

function errorAsObject({ error: name, message, members, cause, thrown }: StoredThrown): unknown {
  if (thrown !== undefined) return thrown.value ?? null;
  return { name, message, ...members, ...(cause !== undefined && { cause: errorAsObject(cause) }) };
}

/** Whether a value is an Error, also one that another realm has made, such as the context of a test runner. */
function isError(value: unknown): value is Error {
  try {
    return value instanceof Error || Object.prototype.toString.call(value) === "[object Error]";
  } catch {
    // A Proxy may throw here.
    return false;
  }
}

/** A copy for storage; undefined if the value cannot be stored, or cannot be read. */
function storableOrUndefined(read: () => unknown): unknown {
  try {
    const value = read();
    if (value === undefined) return undefined;
    const stored = toStorable(value, "error");
    return hasActorReference(stored) ? undefined : stored;
  } catch {
    return undefined;
  }
}
