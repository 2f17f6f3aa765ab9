import { toStorable } from "../../model/json.ts";
import type { Channel } from "../channel.ts";
import { throwInvalidGraph, describeType } from "../definition-checks.ts";
import { isSchema, validate, type Schema } from "../standard-schema.ts";
import { schemaOfInitial } from "./value-schemas.ts";
import { schemaRules, writeParserOf } from "./channel-schema-checks.ts";

/**
 * A key whose writes are combined with its value by `fold`, in the order of the tasks. `fold` MUST be pure: it may be
 * called more than once for one write, and MUST NOT change its arguments.
 *
 * With a schema, the schema validates writes, and the default of the schema is the initial value; if the schema has no
 * default, the first write becomes the value. Without a schema, `initial` is the initial value.
 * @throws ServiceError `graph.invalid` if `fold` is no function
 */
export function reduce<V, I = V>(
  schema: Schema<I, V>,
  fold: (value: NoInfer<V>, update: NoInfer<V>) => NoInfer<V>,
): Channel<V, I>;
export function reduce<V, U = V>(initial: V, fold: (value: V, update: U) => V): Channel<V, U>;
export function reduce(start: unknown, fold: (value: never, update: never) => unknown): Channel {
  if (typeof fold !== "function") {
    throwInvalidGraph(
      `reduce(initial, fold): fold must be a function of the value and an update, not ${describeType(fold)}`,
    );
  }
  const apply = fold as (value: unknown, update: unknown) => unknown;
  const schema = isSchema(start) ? start : undefined;
  return {
    "~channel": {},
    kind: "reduce",
    life: "kept",
    initial: schema === undefined ? toStorable(start, "initial") : initialOf(schema),
    // Says nothing about the input, because writes may have another type than the value.
    describe: (side) => (side === "output" ? schemaOfInitial(start) : {}),
    ...(schema && schemaRules(schema)),
    read: writeParserOf(schema),
    update(current, writes, key) {
      let value = current;
      for (const write of writes) value = value === undefined ? write : apply(value, write);
      const stored = toStorable(value, key);
      return { value: stored, change: { kind: "set", value: stored } };
    },
  };
}

function initialOf(schema: Schema): unknown {
  const absent = validate(schema, undefined, "initial");
  return absent.ok && absent.value !== undefined ? toStorable(absent.value, "initial") : undefined;
}
