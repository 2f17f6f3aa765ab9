import type { GraphOutline } from "../graph/graph-as-statechart.ts";
import { START } from "../graph/definition-checks.ts";
import { CONDITIONAL, type OutlineEdge } from "../graph/outline-edges.ts";
import { END } from "../graph/commands.ts";
import type { GraphDrawing, DrawnEdge, DrawnNode } from "../model/graph-drawing.ts";
import { isObject, type JsonObject } from "../model/json.ts";
import { compiledGraphAt } from "./node-interception.ts";
import type { CompiledGraph } from "./exported-graph.ts";

interface Drawable {
  readonly nodes: { readonly [id: string]: { readonly metadata?: unknown } };
  toJSON(): unknown;
}

/** LangGraph's drawing of a graph. `levels`: the number of levels of subgraphs that are drawn in place of their nodes; Infinity for all. */
export async function langGraphDrawing(graph: CompiledGraph, levels: number): Promise<GraphDrawing> {
  const xray = levels <= 0 ? false : Number.isFinite(levels) ? levels : true;
  const drawn = (await graph.getGraphAsync({ xray } as Parameters<
    typeof graph.getGraphAsync
  >[0])) as Drawable;
  // A copy through JSON, because the drawing may contain values that are not JSON.
  const { nodes, edges } = JSON.parse(JSON.stringify(drawn.toJSON())) as {
    readonly nodes: readonly DrawnNode[];
    readonly edges: readonly DrawnEdge[];
  };
  return { nodes: nodes.map((node) => withMetadata(node, drawn)), edges: edges.map(edgeOf) };
}

function withMetadata({ id, type, data }: DrawnNode, drawn: Drawable): DrawnNode {
  const metadata = Object.hasOwn(drawn.nodes, id) ? drawn.nodes[id]?.metadata : undefined;
  if (!isObject(metadata) || Object.keys(metadata).length === 0) return { id, type, data };
  return { id, type, data, metadata: JSON.parse(JSON.stringify(metadata)) as JsonObject };
}

function edgeOf({ source, target, conditional, data }: DrawnEdge): DrawnEdge {
  return { source, target, conditional, ...(data !== undefined && { data }) };
}

/** The nodes and edges from which a graph's statechart is made. For a graph of the functional API, only the nodes are known. */
export function langGraphOutline(graph: CompiledGraph): GraphOutline {
  const names = Object.keys(graph.nodes).filter((name) => name !== START);
  const edges = new Map<string, OutlineEdge[]>([START, ...names, END].map((name) => [name, []]));
  const forks = new Map<string, string[]>();
  const lead = (from: string, to: string, isChosen: boolean) => {
    const out = edges.get(from);
    if (out === undefined || !edges.has(to) || out.some((edge) => edge.to === to)) return;
    out.push(isChosen ? { to, guard: CONDITIONAL } : { to });
  };
  for (const { source, target, conditional } of edgesIn(graph)) lead(source, target, conditional);
  if (edges.get(START)?.length === 0) for (const name of names) lead(START, name, false);
  for (const name of names) if (edges.get(name)?.length === 0) lead(name, END, false);
  for (const [from, out] of edges)
    if (out.every(({ guard }) => guard === undefined))
      forks.set(
        from,
        out.map(({ to }) => to),
      );
  const inner = (node: string) => {
    const found = compiledGraphAt(graph, node);
    return found === undefined ? null : langGraphOutline(found);
  };
  return { edges, forks, inner };
}

function edgesIn(graph: CompiledGraph): readonly DrawnEdge[] {
  const { getGraph } = graph as { getGraph?(config: object): { readonly edges: readonly DrawnEdge[] } };
  if (typeof getGraph !== "function") return [];
  try {
    return getGraph.call(graph, {}).edges;
  } catch {
    // A remote graph has no local drawing. Its own server draws it when a drawing is requested.
    return [];
  }
}
