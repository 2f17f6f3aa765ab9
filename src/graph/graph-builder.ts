import type { JsonObject } from "../model/json.ts";
import type { State, StateSpec, Update } from "./channel.ts";
import type { Ctx } from "./node-context.ts";
import { defineGraph, type GraphDefinition } from "./definition.ts";
import type { Branch, END, Send, Target, To, ToParent } from "./commands.ts";
import type { Schema } from "./standard-schema.ts";

/**
 * A graph with the state `S` and nodes named `N`. It is immutable. The configuration file gives it the name by which
 * clients know it.
 */
export interface GraphDef<
  S extends StateSpec = StateSpec,
  N extends string = string,
> extends GraphDefinition {
  readonly "~types"?: { readonly state: S; readonly nodes: N };
}

/** The return value of a node: an update, a command, a list of commands, or nothing. */
export type Returned<S extends StateSpec, N extends string> =
  | Update<S>
  | To<N | END, Update<S>>
  | ToParent
  | readonly (Send<N> | To<N | END, Update<S>> | ToParent)[]
  // oxlint-disable-next-line no-invalid-void-type -- a node may return nothing
  | void;

export type NodeFn<In, R, C> = (state: In, ctx: Ctx<C>) => R | Promise<R>;

/** Milliseconds, or a text such as `"500ms"`, `"30s"`, `"2m"`, `"1h"`. */
export type Time = number | string;

/** The retry policy of a node: the number of attempts, and the pauses between them. */
export interface Retry {
  /** The number of attempts, including the first one. Default: 3. */
  readonly attempts?: number;
  /** The pause after the first failure. Default: 500 ms. */
  readonly initial?: Time;
  /** The factor by which each pause is longer than the pause before it. Default: 2. */
  readonly factor?: number;
  /** The longest pause. Default: 128 seconds. */
  readonly max?: Time;
  /** True: each pause is extended by a random amount of up to a quarter. Default: true. */
  readonly jitter?: boolean;
  /**
   * Returns true if a retry makes sense after this error. Default: true for all errors except aborts, errors with an
   * HTTP status from 400 to 409 other than 408, and errors of Heddle itself. Not called for an attempt that timed out,
   * which is always worth a retry.
   */
  readonly when?: (error: unknown) => boolean;
}

/**
 * The result cache of a node, in the memory of the server's process. On a hit the node's function does not
 * run and emits nothing. The cache is empty after a restart. It keeps the latest results of a node: at most
 * 1,000, with at most 16 Mi characters of JSON in all. Tenants do not share results. Results that cannot be
 * stored, such as values of untracked keys, are not cached.
 */
export interface Cache<In, C> {
  /** How long a result may be used. Default: until newer results displace it, or the process ends. */
  readonly ttl?: Time;
  /** The cache key, any JSON value. Default: the input and the context. */
  readonly key?: (input: In, context: C) => unknown;
}

export interface NodeOptions<N extends string, In = unknown, C = unknown> {
  /** The number of attempts before the run fails, or a retry policy. Default: 1 attempt. */
  readonly retry?: number | Retry;
  /** The longest time that one attempt of a task may take. Default: no limit. */
  readonly timeout?: Time;
  /**
   * The node waits until all of these nodes have run. If one of them never runs, because a branch chose other nodes,
   * this node does not run either.
   */
  readonly after?: readonly N[];
  /** True: the node waits until no other node is left to run. A `send` to the node is not deferred. */
  readonly defer?: boolean;
  readonly cache?: Cache<In, C>;
}

/**
 * A node: a function, an object with `run`, or a subgraph.
 *
 * A subgraph gets the keys that both states have (or the input of a `send`), runs in its own supersteps, and returns
 * the shared keys that its nodes have written, each as one write of the whole value. So if both states have a `list()`
 * or a `reduce()` with the same name, the items that the subgraph got are returned too and added again, as in
 * LangGraph, unless the subgraph's `input` leaves out that key. Messages are not duplicated, because they have ids. The
 * subgraph's other keys are private. Breakpoints in a subgraph are named by their path: `interrupt_before:
 * ["sub|node"]`.
 */
export type NodeSpec<S extends StateSpec, I, N extends string, C> =
  | NodeFn<State<S>, Returned<S, N>, C>
  | (NodeOptions<N, unknown extends I ? State<S> : I, C> & {
      /**
       * Validates the input of a `send`. If an edge leads to the node instead, the schema selects the node's input from
       * the state.
       */
      readonly input?: Schema<unknown, I>;
      readonly run: NodeFn<unknown extends I ? State<S> : I, Returned<S, N>, C> | GraphDefinition;
    })
  | GraphDefinition;

/** The edge of a node: a node, several nodes that run in parallel, or a function of the state (with the node's own update applied). */
export type EdgeSpec<S extends StateSpec, N extends string> =
  | N
  | END
  | readonly (N | END)[]
  | ((state: State<S>) => Target<N> | readonly Target<N>[])
  | Branch<State<S>, N | END>;

/**
 * Defines a graph: nodes that read and update a shared state, in supersteps.
 * @throws ServiceError `graph.invalid`, with the name of the graph and of the invalid part
 */
export function graph<S extends StateSpec, I extends Record<string, unknown>, C = unknown>(literal: {
  readonly name?: string;
  readonly state: S;
  /** Validates the context of the assistant and the run. */
  readonly context?: Schema<unknown, C>;
  /**
   * The keys that an input may have: a list, or a record with a schema for each, which validates the input before the state's
   * own schema does. An input with another key of the state is refused. Default: all keys.
   */
  readonly input?: readonly (keyof S & string)[] | { readonly [K in keyof S]?: Schema };
  /**
   * The keys that a run returns: in the responses of `wait` and `join`, and in the stream mode `values`. The thread's state has
   * all keys. Default: all keys. The schemas of a record only describe the keys; they validate nothing.
   */
  readonly output?: readonly (keyof S & string)[] | { readonly [K in keyof S]?: Schema };
  /**
   * Converts a state that an earlier version of this graph made; `from` is the hash of that version. It is called with
   * the whole stored state, at the start of a run on a thread whose latest checkpoint was made by another version of
   * the graph. The function MUST be pure: its result is stored with the run's first checkpoint, and before that the
   * function may be called again.
   */
  readonly migrate?: (state: JsonObject, from: { readonly from: string }) => Partial<State<S>>;
  readonly nodes: { readonly [K in keyof I]: NodeSpec<S, I[K], NoInfer<keyof I & string>, C> };
  readonly edges: {
    readonly [K in NoInfer<keyof I & string> | "start"]?: EdgeSpec<S, NoInfer<keyof I & string>>;
  };
}): GraphDef<S, keyof I & string> {
  return defineGraph(literal as Parameters<typeof defineGraph>[0]);
}
