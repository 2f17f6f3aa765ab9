import type { JsonObject } from "../model/json.ts";
import type { State, StateSpec, Update } from "./channel.ts";
import type { Ctx } from "./node-context.ts";
import { define, type Definition } from "./definition.ts";
import type { Branch, END, Send, Target, To, ToParent } from "./commands.ts";
import type { Schema } from "./standard-schema.ts";

/** A graph whose state is `S` and whose nodes are named `N`. Immutable; the configuration file gives it its name. */
export interface GraphDef<S extends StateSpec = StateSpec, N extends string = string> extends Definition {
  readonly "~types"?: { readonly state: S; readonly nodes: N };
}

/** What a node may return: an update, where to go, or nothing. */
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

/** How often a failed node is tried again, and after what pauses. */
export interface Retry {
  /** Tries in all; 3 when absent. */
  readonly attempts?: number;
  /** The pause after the first failure; half a second when absent. */
  readonly initial?: Time;
  /** What each further pause is multiplied by; 2 when absent. */
  readonly factor?: number;
  /** The longest pause; 128 seconds when absent. */
  readonly max?: Time;
  /** Pauses are longer by up to a quarter, by chance; true when absent. */
  readonly jitter?: boolean;
  /**
   * Is this error worth another try? When absent, all are but aborts, errors with an HTTP status from 400 to 409 (408: worth
   * it), and what Heddle itself refuses. A try that took too long is always followed by another.
   */
  readonly when?: (error: unknown) => boolean;
}

/**
 * Results of a node are kept in the memory of the server's process, and given again for the same input: the body does not run
 * then, and emits nothing. They are gone after a restart; of one node at most 1,000 are kept, the latest. Tenants do not
 * share them. What cannot be stored, such as the value of an untracked key, is not kept.
 */
export interface Cache<In, C> {
  /** How long a result is kept; as long as the process lives when absent. */
  readonly ttl?: Time;
  /** What a result is found by, any JSON value; the input and the context when absent. */
  readonly key?: (input: In, context: C) => unknown;
}

export interface NodeOptions<N extends string, In = unknown, C = unknown> {
  /** How often the node is tried before its failure is the run's; 1 when absent. */
  readonly retry?: number | Retry;
  /** How long one try may take. */
  readonly timeout?: Time;
  /** Waits until all of these nodes have run. One that never runs, because a branch went elsewhere, holds it up for good. */
  readonly after?: readonly N[];
  /** Once its turn has come, it waits until no other node is left to run. A `send` to it is not held back. */
  readonly defer?: boolean;
  readonly cache?: Cache<In, C>;
}

/**
 * A node: a function, an object with `run`, or a graph. A graph gets the keys that its state and this one both have (or, of a
 * `send`, what that brings), runs in supersteps of its own, and returns those of them that its nodes have written, each as
 * one write of its whole value: where both states have a `list()` or a `reduce()` of that name, what went in comes back
 * as well, as in LangGraph, unless the graph's `input` leaves that key out. Messages do not double, they have ids. All its
 * other keys stay its own. Its breakpoints are named by the way to them: `interrupt_before: ["sub|node"]`.
 */
export type NodeSpec<S extends StateSpec, I, N extends string, C> =
  | NodeFn<State<S>, Returned<S, N>, C>
  | (NodeOptions<N, unknown extends I ? State<S> : I, C> & {
      /** Checks what a `send` brings; for a node that an edge reaches, it picks from the state. */
      readonly input?: Schema<unknown, I>;
      readonly run: NodeFn<unknown extends I ? State<S> : I, Returned<S, N>, C> | Definition;
    })
  | Definition;

/** Where a node leads: a node, several at once, or what a function of the state (with the node's own update) says. */
export type EdgeSpec<S extends StateSpec, N extends string> =
  | N
  | END
  | readonly (N | END)[]
  | ((state: State<S>) => Target<N> | readonly Target<N>[])
  | Branch<State<S>, N | END>;

/**
 * Defines a graph: nodes that read and update a shared state, in supersteps.
 * @throws ServiceError `graph.invalid`, naming the graph, and the part that is wrong
 */
export function graph<S extends StateSpec, I extends Record<string, unknown>, C = unknown>(literal: {
  readonly name?: string;
  readonly state: S;
  /** Checks the assistant's and the run's context. */
  readonly context?: Schema<unknown, C>;
  /**
   * The keys that an input may have: a list, or a record with a schema for each, which checks the input before the state's own
   * does. An input with another key of the state is refused. All keys when absent.
   */
  readonly input?: readonly (keyof S & string)[] | { readonly [K in keyof S]?: Schema };
  /**
   * The keys that a run shows: in what `wait` and `join` answer, and in the stream mode `values`. The thread's state has all.
   * All keys when absent. A record's schemas describe the keys, they check nothing.
   */
  readonly output?: readonly (keyof S & string)[] | { readonly [K in keyof S]?: Schema };
  /**
   * Makes a state that an earlier form of this graph left fit this one; `from` is the hash of that form. Called, with all that
   * is stored, at the start of a run on a thread whose latest checkpoint another form of the graph has made. MUST be pure:
   * what it returns is stored with the run's first checkpoint, and until then it may be called again.
   */
  readonly migrate?: (state: JsonObject, from: { readonly from: string }) => Partial<State<S>>;
  readonly nodes: { readonly [K in keyof I]: NodeSpec<S, I[K], NoInfer<keyof I & string>, C> };
  readonly edges: {
    readonly [K in NoInfer<keyof I & string> | "start"]?: EdgeSpec<S, NoInfer<keyof I & string>>;
  };
}): GraphDef<S, keyof I & string> {
  return define(literal as Parameters<typeof define>[0]);
}
