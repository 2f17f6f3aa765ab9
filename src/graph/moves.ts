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

/** What a node returns to say itself where to go, with an update or without. Its edges hold all the same. */
export function to<const N extends string, U = never>(
  target: N | Send<N> | readonly (N | Send<N>)[],
  update?: U,
): To<N, U> {
  return update === undefined ? { "~heddle": "to", to: target } : { "~heddle": "to", to: target, update };
}

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
export const isBranch = (value: unknown): value is Branch => branded(value) === "branch";
