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
 * The parts of TypeBox that Heddle uses. No other file imports TypeBox. They are named one by one, so that the others, 68 KB, are not in the
 * bundle.
 */
export { type Static, type TSchema } from "typebox";
export { Compile, type Validator } from "typebox/compile";

/**
 * The range of integers that JavaScript can represent exactly. JSON Schema also accepts `1e20` as an integer, but arithmetic with it is not
 * exact.
 */
const EXACT = { minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER };

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
  /** An integer that JavaScript can represent exactly, unless narrower bounds are given. */
  Integer: (
    options: { readonly minimum?: number; readonly maximum?: number; readonly default?: number } = {},
  ) => Integer({ ...EXACT, ...options }),
  /** An object with any members. It is faster than `Record`, which checks each member and takes up to 10 us for one. */
  Free: () => Unsafe<Record<string, unknown>>({ type: "object" }),
  /**
   * An object with a limited number of members that have the same schema. Unlike `Record`, it checks the number before it checks the
   * members.
   */
  Map: <const T extends TSchema>(kind: T, most: number) =>
    Unsafe<Record<string, Static<T>>>({
      type: "object",
      maxProperties: most,
      allOf: [{ patternProperties: { "^.*$": kind } }],
    }),
};
