import type { Channel } from "../channel.ts";
import { parse, type Schema } from "../standard-schema.ts";
import { checksOf, reader } from "./last-value.ts";
import { only } from "./single-write.ts";

/** A key that lives for the one step that follows the write. Two writes in one superstep are an error. */
export function ephemeral<T = unknown>(schema?: Schema<unknown, T>): Channel<T | undefined, T> {
  return {
    "~channel": {},
    kind: "ephemeral",
    life: "step",
    initial: undefined,
    ...(schema && checksOf(schema)),
    read: reader(schema),
    update(_current, writes, key) {
      const value = only(writes, key);
      return { value, change: { kind: "set", value } };
    },
  };
}

/**
 * A key that is never stored, nor shown to clients: it lives as long as the run's attempt, and may hold what cannot be
 * stored. Nodes MUST cope with its absence. Two writes in one superstep are an error.
 */
export function untracked<T = unknown>(schema?: Schema<unknown, T>): Channel<T | undefined, T> {
  return {
    "~channel": {},
    kind: "untracked",
    life: "never",
    initial: undefined,
    read: (write, at) => (schema === undefined ? write : parse(schema, write, at)),
    update(_current, writes, key) {
      const value = only(writes, key);
      return { value, change: { kind: "set", value } };
    },
  };
}
