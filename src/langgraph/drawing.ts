import type { Drawing, DrawnEdge, DrawnNode } from "../model/drawing.ts";
import { isObject, type JsonObject } from "../model/json.ts";
import type { CompiledGraph } from "./loaded.ts";

interface Drawable {
  readonly nodes: { readonly [id: string]: { readonly metadata?: unknown } };
  toJSON(): unknown;
}

/** As LangGraph draws it; `levels` of subgraphs (all for Infinity) in the place of their nodes. */
export async function drawingOf(graph: CompiledGraph, levels: number): Promise<Drawing> {
  const xray = levels <= 0 ? false : Number.isFinite(levels) ? levels : true;
  const drawn = (await graph.getGraphAsync({ xray } as Parameters<
    typeof graph.getGraphAsync
  >[0])) as Drawable;
  // Through JSON: it may hold what is none.
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
