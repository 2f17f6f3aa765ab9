import { ServiceError } from "../model/errors.ts";
import { describeInstance } from "../model/describe-instance.ts";
import { isObject } from "../model/json.ts";
import { parseDuration } from "../model/time.ts";
import { END } from "./commands.ts";

/** The built-in first node: its task writes the input, and its edge is `edges.start`. */
export const START = "__start__";

const RESERVED: ReadonlySet<string> = new Set([
  "start",
  START,
  END,
  "__input__",
  "__copy__",
  "__interrupt__",
  "__error__",
  "__proto__",
]);
const MAX_NAME_LENGTH = 128;

/** Throws the error for an invalid graph definition. @throws ServiceError `graph.invalid` */
export function throwInvalidGraph(what: string): never {
  throw new ServiceError("graph.invalid", what);
}

export function checkName(name: string, what: string): void {
  if (RESERVED.has(name)) throwInvalidGraph(`${what} "${name}" has a reserved name; call it something else`);
  if (name === "") throwInvalidGraph(`${what} has an empty name`);
  if (name.length > MAX_NAME_LENGTH)
    throwInvalidGraph(`${what} "${name.slice(0, 32)}..." has a name of over ${MAX_NAME_LENGTH} characters`);
  // oxlint-disable-next-line no-control-regex -- the check is for control characters
  if (/[|:\u0000-\u001f]/.test(name)) {
    throwInvalidGraph(
      `${what} ${JSON.stringify(name)}: a name must not contain "|", ":" or control characters`,
    );
  }
}

/** Checks that `target` is the name of a node or, if `end` is set, the end of the graph. */
export function checkTarget(target: unknown, at: string, names: ReadonlySet<string>, end: boolean): void {
  if (end && target === END) return;
  if (typeof target !== "string" || !names.has(target)) {
    const shown = typeof target === "string" ? JSON.stringify(target) : describeType(target);
    throwInvalidGraph(`${at} names ${shown}, which is no node; the nodes are ${[...names].join(", ")}`);
  }
}

export function requireObject(value: unknown, what: string): { readonly [key: string]: unknown } {
  return isObject(value)
    ? value
    : throwInvalidGraph(`${what} must be a plain object, not ${describeType(value)}`);
}

/** The type of a value in words, for error messages: "a number", "null", "a Map". */
export function describeType(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (Array.isArray(value)) return "an array";
  if (typeof value !== "object") return `a ${typeof value}`;
  return isObject(value) ? "an object" : describeInstance(value);
}

/**
 * Reads a duration and returns it in milliseconds.
 * @throws ServiceError `graph.invalid` if it is not a duration above 0
 */
export function requireDurationMs(time: unknown, what: string): number {
  return (
    parseDuration(time) ??
    throwInvalidGraph(`${what} must be milliseconds or a text such as "500ms", "30s" or "2m"`)
  );
}
