import type { ChartState, ChartTransition, StatechartDefinition } from "../model/statechart.ts";
import { START } from "./definition-checks.ts";
import { type GraphDefinition, subgraphOf } from "./definition.ts";
import { dominators } from "./dominators.ts";
import { type OutlineEdge, edgesOf } from "./outline-edges.ts";
import { END } from "./commands.ts";

/** A graph with at most this many nodes is searched for parallel regions. A larger one becomes a statechart without parallel states. */
const MAX_NODES_WITH_REGIONS = 200;
/** The most levels of subgraphs that the statechart contains. */
const MAX_SUBGRAPH_DEPTH = 6;

/** The structure of a graph, from which a statechart is made. */
export interface GraphOutline {
  /** The edges by the node where they start: `__start__` first, `__end__` last. */
  readonly edges: ReadonlyMap<string, readonly OutlineEdge[]>;
  /** For each node with fixed edges, the targets of these edges. These targets run in parallel. */
  readonly forks: ReadonlyMap<string, readonly string[]>;
  /** The subgraph of a node; null if the node is a function. */
  inner(node: string): GraphOutline | null;
}

function outlineOfDefinition(definition: GraphDefinition): GraphOutline {
  const forks = new Map<string, readonly string[]>();
  for (const [from, { kind, targets }] of definition.edges)
    if (kind === "always" && targets !== null) forks.set(from, targets);
  return {
    edges: edgesOf(definition),
    forks,
    inner: (node) => {
      const inner = subgraphOf(definition.nodes.get(node));
      return inner === null ? null : outlineOfDefinition(inner);
    },
  };
}

/** Makes a statechart of a graph that was made with Heddle's `graph()`, not with LangGraph.js. */
export function statechartOfGraph(definition: GraphDefinition, name: string): StatechartDefinition {
  return statechartOfOutline(outlineOfDefinition(definition), name);
}

/**
 * Makes a statechart of a graph. A node becomes a state, an edge a transition when the node ends, and a subgraph a compound
 * state. Nodes that run in parallel become the regions of a parallel state, if no other edge leads into them.
 */
export function statechartOfOutline(outline: GraphOutline, name: string): StatechartDefinition {
  return { id: name, ...chartStateOfOutline(outline, "", 0) };
}

function chartStateOfOutline(
  outline: GraphOutline,
  prefix: string,
  depth: number,
): ChartState & { initial: string } {
  const { edges } = outline;
  const homes = findRegions(outline);
  const states = new Map<string, Map<string, ChartState>>([["", new Map()]]);
  const ids = new Map([...edges.keys()].map((node, i) => [node, idOf(prefix, node, i)]));
  const id = (node: string) => ids.get(node) ?? node;
  for (const [node, out] of edges) {
    const on = transitions(node, out, id);
    const inner = depth >= MAX_SUBGRAPH_DEPTH ? null : outline.inner(node);
    const within = inner === null ? {} : chartStateOfOutline(inner, `${id(node)}/`, depth + 1);
    const state: ChartState =
      node === END ? { id: id(node), type: "final" } : { id: id(node), ...(on && { on }), ...within };
    const home = homes.regions.get(node) ?? "";
    inside(states, home).set(node, state);
  }
  // Handles the innermost groups of regions first, so that a region is complete before the state that contains it is
  // made.
  for (const { key, home, heads } of homes.groups.toReversed()) {
    const regions = heads.map((head) => [
      head,
      { initial: head, states: Object.fromEntries(inside(states, head)) },
    ]);
    inside(states, home).set(key, { type: "parallel", states: Object.fromEntries(regions) });
  }
  return { initial: START, states: Object.fromEntries(inside(states, "")) };
}

function inside<T>(all: Map<string, Map<string, T>>, home: string): Map<string, T> {
  let found = all.get(home);
  if (found === undefined) all.set(home, (found = new Map()));
  return found;
}

/**
 * The id of a state: the node's name if it contains only letters, digits, `_` and `-`, else `node` and a
 * number, because dots and hashes have a meaning in XState ids.
 */
function idOf(prefix: string, node: string, i: number): string {
  return `${prefix}${/^[\w-]+$/.test(node) ? node : `node ${i}`}`;
}

function transitions(
  node: string,
  out: readonly OutlineEdge[],
  id: (node: string) => string,
): ChartState["on"] {
  if (out.length === 0) return undefined;
  const event = node === START ? "start" : `${node}.done`;
  const list = out.map(({ to, ...how }): ChartTransition => ({ target: `#${id(to)}`, ...how }));
  return { [event]: list };
}

interface RegionGroup {
  /** The name of the parallel state. It contains a colon, so no node can have the same name. */
  readonly key: string;
  /** The first node of the region that contains this parallel state; an empty string stands for the graph itself. */
  readonly home: string;
  /** The nodes that are started in parallel: the first node of each region. */
  readonly heads: readonly string[];
}

/** Finds the parallel regions. A region is a node that a fork starts, with all nodes that can be reached only through that node. */
function findRegions({ edges, forks }: GraphOutline) {
  const regions = new Map<string, string>();
  const groups: RegionGroup[] = [];
  if (edges.size > MAX_NODES_WITH_REGIONS) return { regions, groups };
  const above = dominators(
    new Map([...edges].map(([from, out]) => [from, new Set(out.map(({ to }) => to))])),
    START,
  );
  const isBelow = (node: string, head: string): boolean => {
    for (let at: string | undefined = node; at !== undefined; at = above.get(at))
      if (at === head) return true;
    return false;
  };
  // True if only the fork's edge, and edges from within the region, lead to the region's first node.
  const isClosed = (head: string, from: string): boolean =>
    [...edges].every(
      ([other, out]) => other === from || out.every(({ to }) => to !== head) || isBelow(other, head),
    );
  const heads = new Map<string, readonly string[]>();
  for (const [from, targets] of forks) {
    const own = targets.filter((to) => to !== END && above.get(to) === from && isClosed(to, from));
    if (own.length > 1 && own.length === targets.length) heads.set(from, own);
  }
  const isHead = new Set([...heads.values()].flat());
  const homeOf = (node: string): string => {
    for (let at: string | undefined = node; at !== undefined; at = above.get(at))
      if (isHead.has(at)) return at;
    return "";
  };
  for (const node of edges.keys()) regions.set(node, homeOf(node));
  regions.set(END, "");
  for (const [from, own] of heads) {
    groups.push({ key: `after: ${from}`, home: homeOf(from), heads: own });
  }
  // Sorts the groups from the outermost to the innermost.
  const depth = (home: string): number => {
    const from = [...heads].find(([, own]) => own.includes(home))?.[0];
    return from === undefined ? 0 : 1 + depth(homeOf(from));
  };
  groups.sort((a, b) => depth(a.home) - depth(b.home));
  return { regions, groups };
}
