import { ServiceError } from "../model/errors.ts";
import type { AuthValue } from "../ports/authorizer.ts";

/** A type check of a value. A handler may have changed the value, so it can have any type. */
type Check<T> = (value: unknown) => value is T;
export type Checks = { readonly [name: string]: Check<unknown> };
type Checked<C> = { [K in keyof C]?: C[K] extends Check<infer T> ? T : never };

/**
 * Returns the members of `value`, as the handlers have left it, for which there are checks. Members that are undefined or null are left
 * out.
 * @throws ServiceError `auth.failed` if a member has a wrong type: leaving it out could allow more than the handler meant
 */
export function checkedMembers<C extends Checks>(value: AuthValue, checks: C): Checked<C> {
  const given: { [name: string]: unknown } = {};
  for (const [name, is] of Object.entries(checks)) {
    const member = value[name];
    if (member === undefined || member === null) continue;
    if (!is(member)) {
      const cause = new TypeError(`a handler has put a wrong type of value into value.${name}`);
      throw new ServiceError("auth.failed", "The project's rules failed; the log has the cause", { cause });
    }
    given[name] = member;
  }
  return given as Checked<C>;
}

/**
 * Removes the members that handlers may change. The caller then adds these members again as the handlers have left them, so that a member
 * that a handler removed stays removed.
 */
export function withoutMembers<T extends object, C extends object>(request: T, keys: C): Omit<T, keyof C> {
  return Object.fromEntries(Object.entries(request).filter(([name]) => !Object.hasOwn(keys, name))) as Omit<
    T,
    keyof C
  >;
}

export const isText = (value: unknown): value is string => typeof value === "string";

export const isTexts = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.every(isText);

export const isNumber = (value: unknown): value is number =>
  typeof value === "number" && Number.isFinite(value);

export const isCount = (value: unknown): value is number =>
  Number.isSafeInteger(value) && (value as number) >= 0;

/** Accepts any value except undefined. The code that uses the value checks its type. */
export const isDefined = (value: unknown): value is unknown => value !== undefined;

export const isOneOf =
  <T extends string>(texts: readonly T[]): Check<T> =>
  (value): value is T =>
    (texts as readonly unknown[]).includes(value);
