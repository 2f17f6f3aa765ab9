/** The name of the graph's end. A node without edges leads to the end. */
export const END = "__end__" as const;
export type END = typeof END;

/** A command to run a node in the next step with its own input instead of the state. */
export interface Send<N extends string = string> {
  readonly "~heddle": "send";
  readonly node: N;
  readonly input: unknown;
}

/** A command that a node returns to name the next nodes, in addition to its edges. */
export interface To<N extends string = string, U = unknown> {
  readonly "~heddle": "to";
  readonly to: N | Send<N> | readonly (N | Send<N>)[];
  readonly update?: U;
}

/**
 * A command that a node of a subgraph returns to continue in the parent graph. The subgraph ends after the superstep, and
 * returns nothing of its state to the parent graph; `write` is an update of the parent's state.
 */
export interface ToParent {
  readonly "~heddle": "parent";
  // These fields are named differently from those of To, because TypeScript would otherwise infer type parameters of To from a ToParent.
  readonly parent: string | Send | readonly (string | Send)[];
  readonly write?: unknown;
}

export type Target<N extends string = string> = N | END | Send<N>;

/** A conditional edge: a function of the state, with its possible targets for the drawing. */
export interface Branch<St = never, N extends string = string> {
  readonly "~heddle": "branch";
  readonly choose: (state: St) => Target<N> | readonly Target<N>[];
  readonly targets: readonly (N | END)[];
}

/**
 * Makes a command that runs `node` in the next step with `input` instead of the state. Each send is a task of its own.
 * If the node has an `input` schema, the schema validates `input`. State keys that are never stored are left out of
 * `input`.
 */
export function send<const N extends string>(node: N, input: unknown): Send<N> {
  return { "~heddle": "send", node, input };
}

function toNode<const N extends string, U = never>(
  target: N | Send<N> | readonly (N | Send<N>)[],
  update?: U,
): To<N, U> {
  return update === undefined ? { "~heddle": "to", to: target } : { "~heddle": "to", to: target, update };
}

function toParent(target: ToParent["parent"], update?: unknown): ToParent {
  const leaving = { "~heddle": "parent", parent: target } as const;
  return update === undefined ? leaving : { ...leaving, write: update };
}

interface ToNode {
  <const N extends string, U = never>(target: N | Send<N> | readonly (N | Send<N>)[], update?: U): To<N, U>;
  /**
   * Leaves the subgraph for nodes of the parent graph (LangGraph's `Command.PARENT`).
   * @see ToParent
   */
  readonly parent: typeof toParent;
}

/**
 * Makes a command that names the next nodes, with or without an update. As in LangGraph, the node's edges apply too: `to(END)` adds
 * nothing, and a node with an edge still continues along it.
 */
export const to: ToNode = Object.assign(toNode, { parent: toParent });

/**
 * Makes a conditional edge. `choose` gets the state with the node's own update applied; its parameter needs
 * an explicit type: `(s: State<typeof state>) => ...`. The drawing shows `targets`. If `choose` returns
 * another node, the run fails.
 */
export function branch<St, const N extends string>(
  choose: (state: St) => Target<NoInfer<N>> | readonly Target<NoInfer<N>>[],
  targets: readonly N[],
): Branch<St, N> {
  return { "~heddle": "branch", choose, targets };
}

function brandOf(value: unknown): unknown {
  return typeof value === "object" && value !== null
    ? (value as { "~heddle"?: unknown })["~heddle"]
    : undefined;
}

export const isSendCommand = (value: unknown): value is Send => brandOf(value) === "send";
export const isToCommand = (value: unknown): value is To => brandOf(value) === "to";
export const isToParentCommand = (value: unknown): value is ToParent => brandOf(value) === "parent";
export const isBranch = (value: unknown): value is Branch => brandOf(value) === "branch";
