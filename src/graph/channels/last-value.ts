import { toStorable } from "../../model/json.ts";
import type { Channel, Rule } from "../channel.ts";
import { faults, parse, shapeOf, validate, type Schema } from "../standard-schema.ts";
import { jsonSchemaOf } from "../json-schema.ts";
import { only } from "./single-write.ts";

const set: Rule["update"] = (_current, writes, key) => {
  const value = only(writes, key);
  return { value, change: { kind: "set", value } };
};

/** A key that holds the last value written. Two writes in one superstep are an error. */
export function value<T>(): Channel<T | undefined, T>;
export function value<T>(initial: T): Channel<T, T>;
export function value<T>(initial?: T): Channel<T | undefined, T> {
  return {
    "~channel": {},
    kind: "value",
    life: "kept",
    initial: initial === undefined ? undefined : toStorable(initial, "initial"),
    // Any value may follow.
    describe: () => (initial === undefined ? {} : { default: initial }),
    read: toStorable,
    update: set,
  };
}

/**
 * A last-value key whose writes `schema` checks; its default, if it has one, is the initial value. One
 * that refuses `undefined` is required.
 */
export function checked(schema: Schema, key: string): Channel {
  const absent = validate(schema, undefined, key);
  return {
    "~channel": {},
    kind: "value",
    life: "kept",
    initial: absent.ok && absent.value !== undefined ? toStorable(absent.value, key) : undefined,
    required: !absent.ok,
    ...checksOf(schema),
    read: (write, at) => toStorable(parse(schema, write, at), at),
    update: set,
  };
}

/** What a schema says of values that are stored. */
export function checksOf(schema: Schema): Pick<Rule, "shape" | "check" | "describe"> {
  return {
    shape: shapeOf(schema),
    check: (stored, at) => faults(schema, stored, at),
    describe: (side) => jsonSchemaOf(schema, side),
  };
}

/** How a declared value is read: by its schema, or as it is. */
export function reader(schema: Schema | undefined): Rule["read"] {
  return schema === undefined ? toStorable : (write, at) => toStorable(parse(schema, write, at), at);
}
