import type { ChannelChange } from "../model/checkpoint.ts";
import type { FieldError } from "../model/errors.ts";
import type { JsonObject } from "../model/json.ts";
import type { Side } from "./json-schema.ts";
import type { Schema } from "./standard-schema.ts";

/** What the writes of one superstep make of a channel. */
export interface Changed {
  readonly value: unknown;
  readonly change: ChannelChange;
}

/**
 * How one key of the state takes writes. Pure: a rule keeps nothing between calls, and never changes a value it was given.
 * An absent value is `undefined`.
 */
export interface Rule {
  /** Names the rule, for drawings and the definition's hash. */
  readonly kind: string;
  /** `kept` until overwritten; `step`: gone after the step that follows the write; `never` stored, and gone with the run. */
  readonly life: "kept" | "step" | "never";
  /** The value before the first write, or undefined. */
  readonly initial: unknown;
  /** Must it have a value when a run starts? */
  readonly required?: boolean;
  /** What its schema gives, as far as that can be told: a part of the definition's hash. */
  readonly shape?: string | null;
  /** A write (`input`) or the value (`output`) as JSON Schema, as far as that can be told. */
  describe?(side: Side): JsonObject | null;
  /** What is wrong with a stored value that another structure of the graph left, `at` being its path. */
  check?(stored: unknown, at: string): readonly FieldError[];
  /**
   * The normal form of one task's write: validated, a copy of its own, storable.
   * @param at names it in errors, e.g. `update.notes`
   * @param mint a deterministic id for the n-th part of the write
   * @throws ServiceError `state.invalid`, `value.unstorable`
   */
  read(write: unknown, at: string, mint: (index: number) => string): unknown;
  /**
   * What `writes`, in the order of their tasks and in normal form, make of `current`; undefined when nothing changes.
   * @throws ServiceError `state.concurrent_update`, `state.invalid`
   */
  update(current: unknown, writes: readonly unknown[], key: string): Changed | undefined;
  /** Of a list of messages: does it hold one with this id? Other rules hold no messages. */
  holds?(current: unknown, id: string): boolean;
  /** Of a list of messages: a message that a run was stopped in the middle of is kept. */
  readonly keepsPartial?: boolean;
}

/** A key of the state that takes writes of type `U` and is read as `V`. */
export interface Channel<V = unknown, U = V> extends Rule {
  readonly "~channel": { readonly value?: V; readonly update?: U };
}

export function isChannel(value: unknown): value is Channel {
  return typeof value === "object" && value !== null && "~channel" in value;
}

/** The state of a graph, key by key: a Standard Schema (last value) or a channel. */
export interface StateSpec {
  readonly [key: string]: Schema | Channel;
}

type Types<X> = X extends { readonly "~standard": { readonly types?: infer T } } ? NonNullable<T> : never;

type ValueOf<X> =
  X extends Channel<infer V, unknown> ? V : Types<X> extends { readonly output: infer O } ? O : unknown;

type UpdateOf<X> =
  X extends Channel<unknown, infer U> ? U : Types<X> extends { readonly input: infer I } ? I : unknown;

/** What a node reads. */
export type State<S extends StateSpec> = { readonly [K in keyof S]: ValueOf<S[K]> };

/** What a node may return: some of the keys. */
export type Update<S extends StateSpec> = { readonly [K in keyof S]?: UpdateOf<S[K]> | undefined };
