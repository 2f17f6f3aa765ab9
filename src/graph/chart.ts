import type { ChartState, ChartTransition, Statechart } from "../model/statechart.ts";
import { START } from "./check.ts";
import { type Definition, subgraphOf } from "./definition.ts";
import { dominators } from "./dominators.ts";
import { END } from "./moves.ts";

/** A graph with more nodes is drawn flat: what runs side by side is looked for in small ones alone. */
const MOST_NESTED = 200;
/** Subgraphs within subgraphs that are drawn. */
const DEEPEST = 6;

interface Edge {
  readonly to: string;
  /** Only the run itself knows whether it is taken. */
  readonly guard?: string;
  readonly description?: string;
}

/** Where it leads is a function's to say, so every place is shown that nothing else leads to. */
const CHOSEN = { guard: "chosen", description: "chosen at run time; the graph does not declare where" };

/**
 * The graph as a statechart: a node is a state, an edge a transition on the node's end, a subgraph a state with states inside,
 * and what an edge starts side by side are the regions of a parallel state, as far as nothing else leads into them.
 */
export function chartOf(definition: Definition, name: string): Statechart {
  return { id: name, ...drawn(definition, "", 0) };
}

function drawn(definition: Definition, prefix: string, depth: number): ChartState & { initial: string } {
  const edges = edgesOf(definition);
  const homes = homesOf(definition, edges);
  const states = new Map<string, Map<string, ChartState>>([["", new Map()]]);
  const ids = new Map([...edges.keys()].map((node, i) => [node, idOf(prefix, node, i)]));
  const id = (node: string) => ids.get(node) ?? node;
  for (const [node, out] of edges) {
    const on = transitions(node, out, id);
    const inner = subgraphOf(definition.nodes.get(node));
    const within = inner === null || depth >= DEEPEST ? {} : drawn(inner, `${id(node)}/`, depth + 1);
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

/** Every edge, by the node that it leaves, the start first and the end last. */
function edgesOf(definition: Definition): ReadonlyMap<string, readonly Edge[]> {
  const { nodes, edges } = definition;
  const out = new Map<string, Edge[]>([START, ...nodes.keys(), END].map((name) => [name, []]));
  const led = new Set<string>();
  const lead = (from: string, edge: Edge) => {
    led.add(edge.to);
    out.get(from)?.push(edge);
  };
  for (const [from, { kind, targets }] of edges) {
    for (const to of targets ?? []) lead(from, kind === "choice" ? { to, guard: "chosen" } : { to });
  }
  for (const node of nodes.values()) {
    for (const from of node.after) {
      const others = node.after.filter((one) => one !== from);
      lead(from, {
        to: node.name,
        ...(others.length > 0 && { guard: `${others.join(", ")} done`, description: "waits for all" }),
      });
    }
  }
  const unled = [...nodes.keys()].filter((name) => !led.has(name));
  const open = [...edges].filter(([, { targets }]) => targets === null).map(([from]) => from);
  const last = [...nodes.keys()].filter((name) => out.get(name)?.length === 0 && !open.includes(name));
  for (const from of open) {
    const to = unled.length > 0 ? unled : [...nodes.keys()];
    for (const one of [...to.filter((name) => name !== from), END])
      out.get(from)?.push({ to: one, ...CHOSEN });
  }
  for (const from of last) {
    // A body may say itself where to go, by `to` or `send`.
    const to = open.length === 0 && !unled.includes(from) ? unled : [];
    for (const one of to) out.get(from)?.push({ to: one, ...CHOSEN });
    out.get(from)?.push({ to: END });
  }
  return out;
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
function homesOf(definition: Definition, edges: ReadonlyMap<string, readonly Edge[]>) {
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
  for (const [from, { kind, targets }] of definition.edges) {
    const own = (targets ?? []).filter((to) => to !== END && above.get(to) === from && isClosed(to, from));
    if (kind === "always" && own.length > 1 && own.length === targets?.length) heads.set(from, own);
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
