import type { State, StateSpec, Update } from "./channel.ts";
import type { Ctx } from "./context.ts";
import { define, type Definition } from "./definition.ts";
import type { Branch, END, Send, Target, To } from "./moves.ts";
import type { Schema } from "./schema.ts";

/** A graph whose state is `S` and whose nodes are named `N`. Immutable; the configuration file gives it its name. */
export interface GraphDef<S extends StateSpec = StateSpec, N extends string = string> extends Definition {
  readonly "~types"?: { readonly state: S; readonly nodes: N };
}

/** What a node may return: an update, where to go, or nothing. */
export type Returned<S extends StateSpec, N extends string> =
  | Update<S>
  | To<N | END, Update<S>>
  | readonly (Send<N> | To<N | END, Update<S>>)[]
  // oxlint-disable-next-line no-invalid-void-type -- a node may return nothing
  | void;

export type NodeFn<In, R, C> = (state: In, ctx: Ctx<C>) => R | Promise<R>;

export interface NodeOptions<N extends string> {
  /** How often the node is tried before its failure is the run's; 1 when absent. */
  readonly retry?: number;
  /** How long one try may take: milliseconds, or a text such as `"30s"`. */
  readonly timeout?: number | string;
  /** Waits until all of these nodes have run. */
  readonly after?: readonly N[];
}

export type NodeSpec<S extends StateSpec, I, N extends string, C> =
  | NodeFn<State<S>, Returned<S, N>, C>
  | (NodeOptions<N> & {
      /** Checks what a `send` brings; for a node that an edge reaches, it picks from the state. */
      readonly input?: Schema<unknown, I>;
      readonly run: NodeFn<unknown extends I ? State<S> : I, Returned<S, N>, C>;
    })
  | GraphDef;

/** Where a node leads: a node, several at once, or what a function of the state (with the node's own update) says. */
export type EdgeSpec<S extends StateSpec, N extends string> =
  | N
  | END
  | readonly (N | END)[]
  | ((state: State<S>) => Target<N> | readonly Target<N>[])
  | Branch<State<S>, N | END>;

/**
 * Defines a graph: nodes that read and update a shared state, in supersteps.
 * @throws ServiceError `graph.invalid`, naming the part that is wrong
 */
export function graph<S extends StateSpec, I extends Record<string, unknown>, C = unknown>(literal: {
  readonly name?: string;
  readonly state: S;
  readonly context?: Schema<unknown, C>;
  readonly nodes: { readonly [K in keyof I]: NodeSpec<S, I[K], NoInfer<keyof I & string>, C> };
  readonly edges: {
    readonly [K in NoInfer<keyof I & string> | "start"]?: EdgeSpec<S, NoInfer<keyof I & string>>;
  };
}): GraphDef<S, keyof I & string> {
  return define(literal as Parameters<typeof define>[0]);
}
