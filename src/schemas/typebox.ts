import { type Static, type TSchema, Type as All } from "typebox";

/** What is used of TypeBox, and the only way to it. */
export { type Static, type TSchema } from "typebox";
export { Compile, type Validator } from "typebox/compile";

/** Beyond these, whole numbers are no longer told apart: `1e20` is an integer to JSON Schema, and no number to count with. */
const EXACT = { minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER };

export const Type = {
  ...All,
  /** Within the bounds in which a number is exact, unless narrower ones are given. */
  Integer: (
    options: { readonly minimum?: number; readonly maximum?: number; readonly default?: number } = {},
  ) => All.Integer({ ...EXACT, ...options }),
  /** An object with any members. `Record` would look at each of them, which takes up to 10 us for one. */
  Free: () => All.Unsafe<Record<string, unknown>>({ type: "object" }),
  /** An object with at most so many members, all of one kind. They are counted before they are looked at, unlike those of `Record`. */
  Map: <const T extends TSchema>(kind: T, most: number) =>
    All.Unsafe<Record<string, Static<T>>>({
      type: "object",
      maxProperties: most,
      allOf: [{ patternProperties: { "^.*$": kind } }],
    }),
};
