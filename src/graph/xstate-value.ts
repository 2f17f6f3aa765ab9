import type { ChartState } from "../model/statechart.ts";

/** As XState has it: one state, or by region or parent what is inside it. */
export type ChartValue = string | { readonly [state: string]: ChartValue };

interface Tree extends Map<string, Tree> {}

/**
 * Where a graph's chart stands while these nodes run; each is named by its way through subgraphs. Nodes that run side by side and
 * are in no parallel state stand beside one another all the same: then it is a set, not XState's to move.
 */
export function valueAt(chart: ChartState, running: Iterable<readonly string[]>): ChartValue {
  const tree: Tree = new Map();
  for (const nodes of running) {
    let at = tree;
    for (const state of pathTo(chart, nodes)) {
      let next = at.get(state);
      if (next === undefined) at.set(state, (next = new Map()));
      at = next;
    }
  }
  return shortest(tree);
}

/** The states on the way to a node. One that the chart does not have stands for itself: the graph has changed since. */
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
    // What has an id is a node: what is inside of it is its own affair.
    const found = state.id === undefined ? search(state, node) : undefined;
    if (found !== undefined) return { path: [name, ...found.path], state: found.state };
  }
  return undefined;
}

function shortest(tree: Tree): ChartValue {
  const [only] = tree;
  if (tree.size === 1 && only !== undefined && only[1].size === 0) return only[0];
  return Object.fromEntries([...tree].map(([name, inner]) => [name, shortest(inner)]));
}
