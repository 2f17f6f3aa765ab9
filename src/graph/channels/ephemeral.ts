import type { Channel } from "../channel.ts";
import { throwInvalidGraph, describeType } from "../definition-checks.ts";
import { isSchema, parse, type Schema } from "../standard-schema.ts";
import { schemaRules, writeParserOf } from "./channel-schema-checks.ts";
import { requireSingleWrite } from "./require-single-write.ts";

/**
 * A key whose value lasts until the end of the step after the write. Two writes in one superstep are an error.
 * @throws ServiceError `graph.invalid` if `schema` is not a Standard Schema
 */
export function ephemeral<T = unknown>(schema?: Schema<unknown, T>): Channel<T | undefined, T> {
  checkSchema(schema, "ephemeral");
  return {
    "~channel": {},
    kind: "ephemeral",
    life: "step",
    initial: undefined,
    ...(schema && schemaRules(schema)),
    read: writeParserOf(schema),
    update(_current, writes, key) {
      const value = requireSingleWrite(writes, key);
      return { value, change: { kind: "set", value } };
    },
  };
}

/**
 * A key that is neither stored nor shown to clients. Its value lasts as long as the run's attempt, and need not be storable. Nodes MUST NOT
 * rely on the value, because a restart loses it. Two writes in one superstep are an error.
 * @throws ServiceError `graph.invalid` if `schema` is not a Standard Schema
 */
export function untracked<T = unknown>(schema?: Schema<unknown, T>): Channel<T | undefined, T> {
  checkSchema(schema, "untracked");
  return {
    "~channel": {},
    kind: "untracked",
    life: "never",
    initial: undefined,
    read: (write, at) => (schema === undefined ? write : parse(schema, write, at)),
    update(_current, writes, key) {
      const value = requireSingleWrite(writes, key);
      return { value, change: { kind: "set", value } };
    },
  };
}

function checkSchema(schema: unknown, channel: string): void {
  if (schema === undefined || isSchema(schema)) return;
  throwInvalidGraph(
    `${channel}() takes a schema (zod, valibot, arktype) or nothing, not ${describeType(schema)}`,
  );
}
