import type { ChannelChange } from "../model/checkpoint.ts";
import type { FieldError } from "../model/errors.ts";
import type { JsonObject } from "../model/json.ts";
import type { SchemaSide } from "./json-schema-conversion.ts";
import type { Schema } from "./standard-schema.ts";

/** The new value of a channel after the writes of one superstep, and the change to store. */
export interface ChannelResult {
  readonly value: unknown;
  readonly change: ChannelChange;
}

/**
 * The rule of one state key: how writes are validated and applied. Its functions are pure: their results
 * depend only on their arguments, which they never change. They may keep caches. An absent value is `undefined`.
 */
export interface ChannelRule {
  /** The name of the rule, for drawings and the definition's hash. */
  readonly kind: string;
  /**
   * How long a value lasts. `kept`: until it is overwritten. `step`: until the end of the step after the write. `never`: it is never
   * stored, and lasts until the attempt of the run ends.
   */
  readonly life: "kept" | "step" | "never";
  /** The value before the first write; undefined if the key then has no value. */
  readonly initial: unknown;
  /** True if the key must have a value when a run starts. */
  readonly required?: boolean;
  /**
   * The type of the values as text, which is part of the definition's hash; null or absent if the schema does not tell
   * the type.
   */
  readonly shape?: string | null;
  /** The JSON Schema of a write (`input`) or of the value (`output`); null if unknown. */
  describe?(side: SchemaSide): JsonObject | null;
  /** Validates a stored value that another version of the graph made. @param at the path of the value, for errors */
  check?(stored: unknown, at: string): readonly FieldError[];
  /**
   * Converts one task's write to its normal form: validated and, unless `life` is `never`, a storable copy.
   * @param at the path of the write in errors, such as `update.notes`
   * @param mint makes a deterministic id for the part of the write at an index (from 0), such as for one message of a
   * list
   * @throws ServiceError `state.invalid`, `value.unstorable`
   */
  read(write: unknown, at: string, mint: (index: number) => string): unknown;
  /**
   * Applies `writes`, which are in normal form and in the order of their tasks, to `current`. Undefined if nothing changes.
   * @throws ServiceError `state.concurrent_update`, `state.invalid`
   */
  update(current: unknown, writes: readonly unknown[], key: string): ChannelResult | undefined;
  /** For message lists: true if `current` has a message with this id. Absent in other rules. */
  holds?(current: unknown, id: string): boolean;
  /** For message lists: true if the partial messages of a stopped run are kept in the state. */
  readonly keepsPartial?: boolean;
}

/** A key of the state. It is written with values of type `U`, and read as `V`. */
export interface Channel<V = unknown, U = V> extends ChannelRule {
  readonly "~channel": { readonly value?: V; readonly update?: U };
}

export function isChannel(value: unknown): value is Channel {
  return typeof value === "object" && value !== null && "~channel" in value;
}

/** The specification of a graph's state: for each key a Standard Schema (the last written value wins) or a channel. */
export interface StateSpec {
  readonly [key: string]: Schema | Channel;
}

type SchemaTypes<X> = X extends { readonly "~standard": { readonly types?: infer T } }
  ? NonNullable<T>
  : never;

type ValueOf<X> =
  X extends Channel<infer V, unknown> ? V : SchemaTypes<X> extends { readonly output: infer O } ? O : unknown;

type UpdateOf<X> =
  X extends Channel<unknown, infer U> ? U : SchemaTypes<X> extends { readonly input: infer I } ? I : unknown;

/** The state as a node reads it. */
export type State<S extends StateSpec> = { readonly [K in keyof S]: ValueOf<S[K]> };

/** The update that a node may return: some of the keys. */
export type Update<S extends StateSpec> = { readonly [K in keyof S]?: UpdateOf<S[K]> | undefined };
