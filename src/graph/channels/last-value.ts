import { toStorable } from "../../model/json.ts";
import type { Channel, ChannelRule } from "../channel.ts";
import { fieldErrors, parse, schemaFingerprint, validate, type Schema } from "../standard-schema.ts";
import { jsonSchemaOf } from "../json-schema-conversion.ts";
import { requireSingleWrite } from "./require-single-write.ts";

const set: ChannelRule["update"] = (_current, writes, key) => {
  const value = requireSingleWrite(writes, key);
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
    // Gives no type, because later values may be of any type.
    describe: () => (initial === undefined ? {} : { default: initial }),
    read: toStorable,
    update: set,
  };
}

/**
 * A last-value key whose writes `schema` validates. The schema's default is the initial value; if the schema refuses
 * `undefined`, the key is required.
 */
export function schemaChannel(schema: Schema, key: string): Channel {
  const absent = validate(schema, undefined, key);
  return {
    "~channel": {},
    kind: "value",
    life: "kept",
    initial: absent.ok && absent.value !== undefined ? toStorable(absent.value, key) : undefined,
    required: !absent.ok,
    ...schemaRules(schema),
    read: (write, at) => toStorable(parse(schema, write, at), at),
    update: set,
  };
}

/** Makes the members of a {@link ChannelRule} that depend only on a schema. */
export function schemaRules(schema: Schema): Pick<ChannelRule, "shape" | "check" | "describe"> {
  return {
    shape: schemaFingerprint(schema),
    check: (stored, at) => fieldErrors(schema, stored, at),
    describe: (side) => jsonSchemaOf(schema, side),
  };
}

/** Makes the function `read` of a {@link ChannelRule}. It validates writes with the schema, if there is one. */
export function readerOf(schema: Schema | undefined): ChannelRule["read"] {
  return schema === undefined ? toStorable : (write, at) => toStorable(parse(schema, write, at), at);
}
