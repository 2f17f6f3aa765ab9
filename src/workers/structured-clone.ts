import { toPlainError } from "../model/errors.ts";
import { toStorable, type JsonObject } from "../model/json.ts";
import { withoutTsxUrls } from "../model/stack-without-tsx-urls.ts";
import type { TaskOutcome } from "../ports/engine.ts";
import type { LogFields } from "../ports/logger.ts";

/**
 * Prepares the outcome of a task for structured clone, which drops the classes of objects. Objects with a method `toJSON`, such as
 * LangChain messages, are therefore converted here. If a value has no JSON form, the outcome is the error that storing the value would
 * give.
 */
export function toCloneableOutcome(node: string, outcome: TaskOutcome): TaskOutcome {
  if (outcome.kind !== "returned") return outcome;
  try {
    const value = cloneable(outcome.value, "update", 0);
    return value === outcome.value ? outcome : { ...outcome, value };
  } catch (thrown) {
    const { error, message } = toPlainError(thrown);
    return { kind: "failed", error: { error, message: `Node "${node}": ${message}` } };
  }
}

/**
 * The deepest level of a value that is converted. Deeper parts, which a circular value always has, stay as they are; the server reports the
 * error when it reads the value.
 */
const MAX_CLONE_DEPTH = 32;

function cloneable(value: unknown, at: string, depth: number): unknown {
  if (typeof value === "function" || typeof value === "symbol") return toStorable(value, at);
  if (typeof value !== "object" || value === null || depth > MAX_CLONE_DEPTH) return value;
  if (Array.isArray(value)) {
    const copy = value.map((one, i) => cloneable(one, `${at}[${i}]`, depth + 1));
    return copy.some((one, i) => one !== value[i]) ? copy : value;
  }
  const prototype = Object.getPrototypeOf(value) as unknown;
  if (prototype !== Object.prototype && prototype !== null) return toStorable(value, at);
  // Error messages do not show the members of a command made by `to` or `send`, because users do not see these members. They show the keys
  // of the command's update.
  const made = Object.hasOwn(value, "~heddle");
  let copy: Record<string, unknown> | undefined;
  for (const [key, member] of Object.entries(value)) {
    const shown = cloneable(member, made ? at : `${at}.${key}`, depth + 1);
    if (shown !== member && key !== "__proto__") (copy ??= { ...value })[key] = shown;
  }
  return copy ?? value;
}

/** Prepares the fields of a log line for structured clone. A value that cannot be converted becomes text, so that logging never fails. */
export function toCloneableLogFields(fields: LogFields): JsonObject {
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, cloneableField(value)]));
}

function cloneableField(value: unknown): unknown {
  try {
    if (!(value instanceof Error)) return toStorable(value, "log");
    const { name, message, stack } = value;
    return { name: String(name), message: String(message), stack: withoutTsxUrls(String(stack)) };
  } catch {
    const { error, message } = toPlainError(value);
    return `${error}: ${message}`;
  }
}
