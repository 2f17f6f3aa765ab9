import { isObject } from "../model/json.ts";
import type { ChartState } from "../model/statechart.ts";

/**
 * The active states of a chart, in the form that XState calls a state value: the name of a state, or an object that
 * maps each active region or parent state to the active states inside it.
 */
export type ChartValue = string | { readonly [state: string]: ChartValue };

/**
 * Returns `value` as a {@link ChartValue} if it is a string or an object; otherwise undefined. The members of an object
 * are not checked.
 */
export const asStateValue = (value: unknown): ChartValue | undefined =>
  typeof value === "string" || isObject(value) ? (value as ChartValue) : undefined;

interface Tree extends Map<string, Tree> {}

/**
 * The states of a graph's chart that are active while the given nodes run. Each node is given as a path of node names
 * through subgraphs. Nodes that run in parallel outside a parallel state are listed side by side, although XState has
 * no such state values.
 */
export function chartValueOf(chart: ChartState, running: Iterable<readonly string[]>): ChartValue {
  const tree: Tree = new Map();
  for (const nodes of running) {
    let at = tree;
    for (const state of pathTo(chart, nodes)) {
      let next = at.get(state);
      if (next === undefined) at.set(state, (next = new Map()));
      at = next;
    }
  }
  return compact(tree);
}

/**
 * The path of chart states to a node. `nodes`: the names of the nodes around it, outermost first, then its own name.
 * From the first name that is not in the chart, because the graph has changed, all names are returned as they are.
 */
function pathTo(chart: ChartState, nodes: readonly string[]): readonly string[] {
  const [node, ...inner] = nodes;
  if (node === undefined) return [];
  const found = search(chart, node);
  if (found === undefined) return nodes;
  return [...found.path, ...pathTo(found.state, inner)];
}

function search(chart: ChartState, node: string): { path: string[]; state: ChartState } | undefined {
  const { states = {} } = chart;
  const own = Object.hasOwn(states, node) ? states[node] : undefined;
  if (own?.id !== undefined) return { path: [node], state: own };
  for (const [name, state] of Object.entries(states)) {
    // A state with an id is a node. The states inside it belong to its subgraph, so they are not searched.
    const found = state.id === undefined ? search(state, node) : undefined;
    if (found !== undefined) return { path: [name, ...found.path], state: found.state };
  }
  return undefined;
}

function compact(tree: Tree): ChartValue {
  const [only] = tree;
  if (tree.size === 1 && only !== undefined && only[1].size === 0) return only[0];
  return Object.fromEntries([...tree].map(([name, inner]) => [name, compact(inner)]));
}
