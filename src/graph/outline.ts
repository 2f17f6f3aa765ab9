import type { ChartState, ChartTransition, Statechart } from "../model/statechart.ts";
import { START } from "./definition-checks.ts";
import { type Definition, subgraphOf } from "./definition.ts";
import { dominators } from "./dominators.ts";
import { type Edge, edgesOf } from "./edges.ts";
import { END } from "./commands.ts";

/** A graph with more nodes is drawn flat: what runs side by side is looked for in small ones alone. */
const MOST_NESTED = 200;
/** Subgraphs within subgraphs that are drawn. */
const DEEPEST = 6;

/** What a graph's chart is made of. */
export interface Outline {
  /** Where each node leads: the start first, the end last. */
  readonly edges: ReadonlyMap<string, readonly Edge[]>;
  /** Nodes that always start several others side by side, and do nothing else. */
  readonly forks: ReadonlyMap<string, readonly string[]>;
  /** The graph that a node is. */
  inner(node: string): Outline | null;
}

function outlineOf(definition: Definition): Outline {
  const forks = new Map<string, readonly string[]>();
  for (const [from, { kind, targets }] of definition.edges)
    if (kind === "always" && targets !== null) forks.set(from, targets);
  return {
    edges: edgesOf(definition),
    forks,
    inner: (node) => {
      const inner = subgraphOf(definition.nodes.get(node));
      return inner === null ? null : outlineOf(inner);
    },
  };
}

/** The chart of one of our own graphs. */
export function chartOf(definition: Definition, name: string): Statechart {
  return outlined(outlineOf(definition), name);
}

/**
 * The graph as a statechart: a node is a state, an edge a transition on the node's end, a subgraph a state with states inside,
 * and what an edge starts side by side are the regions of a parallel state, as far as nothing else leads into them.
 */
export function outlined(outline: Outline, name: string): Statechart {
  return { id: name, ...drawn(outline, "", 0) };
}

function drawn(outline: Outline, prefix: string, depth: number): ChartState & { initial: string } {
  const { edges } = outline;
  const homes = homesOf(outline);
  const states = new Map<string, Map<string, ChartState>>([["", new Map()]]);
  const ids = new Map([...edges.keys()].map((node, i) => [node, idOf(prefix, node, i)]));
  const id = (node: string) => ids.get(node) ?? node;
  for (const [node, out] of edges) {
    const on = transitions(node, out, id);
    const inner = depth >= DEEPEST ? null : outline.inner(node);
    const within = inner === null ? {} : drawn(inner, `${id(node)}/`, depth + 1);
    const state: ChartState =
      node === END ? { id: id(node), type: "final" } : { id: id(node), ...(on && { on }), ...within };
    const home = homes.regions.get(node) ?? "";
    inside(states, home).set(node, state);
  }
  // From the innermost out: what holds a region is made once that is whole.
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

/** Readable where the name is plain; XState reads dots and hashes in others. */
function idOf(prefix: string, node: string, i: number): string {
  return `${prefix}${/^[\w-]+$/.test(node) ? node : `node ${i}`}`;
}

function transitions(node: string, out: readonly Edge[], id: (node: string) => string): ChartState["on"] {
  if (out.length === 0) return undefined;
  const event = node === START ? "start" : `${node}.done`;
  const list = out.map(({ to, ...how }): ChartTransition => ({ target: `#${id(to)}`, ...how }));
  return { [event]: list };
}

interface Group {
  /** No node can be called that. */
  readonly key: string;
  /** The head of the region that it stands in; empty: the graph itself. */
  readonly home: string;
  /** The nodes that are started side by side. */
  readonly heads: readonly string[];
}

/** Which nodes form regions of their own: what an edge starts, with all that can be reached through that alone. */
function homesOf({ edges, forks }: Outline) {
  const regions = new Map<string, string>();
  const groups: Group[] = [];
  if (edges.size > MOST_NESTED) return { regions, groups };
  const above = dominators(
    new Map([...edges].map(([from, out]) => [from, new Set(out.map(({ to }) => to))])),
    START,
  );
  const isBelow = (node: string, head: string): boolean => {
    for (let at: string | undefined = node; at !== undefined; at = above.get(at))
      if (at === head) return true;
    return false;
  };
  // Nothing leads to it but its own edge, and what is reached through it.
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
  // Those further in stand later.
  const depth = (home: string): number => {
    const from = [...heads].find(([, own]) => own.includes(home))?.[0];
    return from === undefined ? 0 : 1 + depth(homeOf(from));
  };
  groups.sort((a, b) => depth(a.home) - depth(b.home));
  return { regions, groups };
}
