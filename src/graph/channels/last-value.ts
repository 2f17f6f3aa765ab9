import { toStorable } from "../../model/json.ts";
import type { Channel, ChannelRule } from "../channel.ts";
import { validate, type Schema } from "../standard-schema.ts";
import { requireSingleWrite } from "./require-single-write.ts";
import { schemaRules, writeParserOf } from "./channel-schema-checks.ts";

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
    read: writeParserOf(schema),
    update: set,
  };
}
