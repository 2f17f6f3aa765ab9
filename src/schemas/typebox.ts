import {
  Array,
  Boolean,
  Enum,
  Integer,
  Literal,
  Null,
  Number as NumberType,
  Object,
  Optional,
  Partial,
  Record as RecordType,
  Refine,
  type Static,
  String,
  type TSchema,
  Union,
  Unknown,
  Unsafe,
} from "typebox";

/**
 * What Heddle uses of TypeBox. No other file imports TypeBox. The functions are imported by name, so that the bundle does not contain the
 * other functions (68 KB).
 */
export { type Static, type TSchema } from "typebox";
export { Compile, type Validator } from "typebox/compile";

/**
 * The range of integers that JavaScript can represent exactly. JSON Schema also accepts `1e20` as an integer, but arithmetic with it is not
 * exact.
 */
const EXACT_INTEGERS = { minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER };

export const Type = {
  Array,
  Boolean,
  Enum,
  Literal,
  Null,
  Number: NumberType,
  Object,
  Optional,
  Partial,
  Record: RecordType,
  Refine,
  String,
  Union,
  Unknown,
  /** An integer within the given bounds. The default bounds are those of the integers that JavaScript can represent exactly. */
  Integer: (
    options: { readonly minimum?: number; readonly maximum?: number; readonly default?: number } = {},
  ) => Integer({ ...EXACT_INTEGERS, ...options }),
  /** An object with any members. Faster than `Record`, which checks each member and takes up to 10 us for one. */
  Free: () => Unsafe<Record<string, unknown>>({ type: "object" }),
  /**
   * An object with any names, at most `most` members, and the schema `kind` for each member. Unlike `Record`, it checks the number of
   * members before it checks the members.
   */
  Map: <const T extends TSchema>(kind: T, most: number) =>
    Unsafe<Record<string, Static<T>>>({
      type: "object",
      maxProperties: most,
      allOf: [{ patternProperties: { "^.*$": kind } }],
    }),
};
