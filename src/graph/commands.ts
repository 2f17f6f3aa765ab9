/** The end of the graph: where a node without an edge leads. */
export const END = "__end__" as const;
export type END = typeof END;

/** Runs a node once more, in the next step, with an input of its own instead of the state. */
export interface Send<N extends string = string> {
  readonly "~heddle": "send";
  readonly node: N;
  readonly input: unknown;
}

/** What a node returns to name the next node itself; its edges hold all the same. */
export interface To<N extends string = string, U = unknown> {
  readonly "~heddle": "to";
  readonly to: N | Send<N> | readonly (N | Send<N>)[];
  readonly update?: U;
}

/**
 * What a node of a subgraph returns to go on in the graph above. The subgraph ends with the superstep, its own state is not
 * returned; `write` is in keys of the graph above.
 */
export interface ToParent {
  readonly "~heddle": "parent";
  // Not named as in To: TypeScript would infer the one from the other.
  readonly parent: string | Send | readonly (string | Send)[];
  readonly write?: unknown;
}

export type Target<N extends string = string> = N | END | Send<N>;

/** An edge that is chosen by the state, and tells the drawing between which targets. */
export interface Branch<St = never, N extends string = string> {
  readonly "~heddle": "branch";
  readonly choose: (state: St) => Target<N> | readonly Target<N>[];
  readonly targets: readonly (N | END)[];
}

/**
 * Runs `node` in the next step with `input` instead of the state: once for each send. The node's `input` schema checks it when
 * the run gets there; keys of the state that are never stored are left out of it.
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
   * Leaves the subgraph for nodes of the graph above (LangGraph's `Command.PARENT`).
   * @see ToParent
   */
  readonly parent: typeof toParent;
}

/** What a node returns to say itself where to go, with an update or without. Its edges hold all the same. */
export const to: ToNode = Object.assign(toNode, { parent: toParent });

/**
 * An edge chosen by the state, with the node's own update in it; `targets` are what it may choose among: the drawing shows
 * them, and a choice beside them fails the run. The state's type has to be named: `(s: State<typeof state>) => ...`.
 */
export function branch<St, const N extends string>(
  choose: (state: St) => Target<NoInfer<N>> | readonly Target<NoInfer<N>>[],
  targets: readonly N[],
): Branch<St, N> {
  return { "~heddle": "branch", choose, targets };
}

function branded(value: unknown): unknown {
  return typeof value === "object" && value !== null
    ? (value as { "~heddle"?: unknown })["~heddle"]
    : undefined;
}

export const isSend = (value: unknown): value is Send => branded(value) === "send";
export const isTo = (value: unknown): value is To => branded(value) === "to";
export const isToParent = (value: unknown): value is ToParent => branded(value) === "parent";
export const isBranch = (value: unknown): value is Branch => branded(value) === "branch";
