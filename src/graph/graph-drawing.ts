import type { GraphDrawing, DrawnEdge, DrawnNode } from "../model/graph-drawing.ts";
import { START } from "./definition-checks.ts";
import { type GraphDefinition, subgraphOf } from "./definition.ts";
import { CONDITIONAL, edgesOf } from "./outline-edges.ts";
import { END } from "./commands.ts";

/**
 * The names of the drawn nodes that stand for one node of the graph: edges into the node end at `entry`, and edges out of it
 * start at `exit`.
 */
interface Ends {
  readonly entry: string;
  /** Undefined for a subgraph without a single last node; its outgoing edges are not drawn. */
  readonly exit: string | undefined;
}

/** Draws a graph as LangGraph does. `depth`: the levels of subgraphs that are expanded into their nodes. */
export function drawDefinition(definition: GraphDefinition, depth: number): GraphDrawing {
  const nodes: DrawnNode[] = [schemaNode(START)];
  const edges: DrawnEdge[] = [];
  const ends = new Map<string, Ends>([[START, { entry: START, exit: START }]]);
  for (const node of definition.nodes.values()) {
    const inner = subgraphOf(node);
    const expanded =
      inner === null || depth <= 0 ? undefined : expand(drawDefinition(inner, depth - 1), node.name);
    if (expanded === undefined) {
      nodes.push({ id: node.name, type: "runnable", data: dataOf(node.name, inner !== null) });
      ends.set(node.name, { entry: node.name, exit: node.name });
    } else {
      nodes.push(...expanded.drawing.nodes);
      edges.push(...expanded.drawing.edges);
      ends.set(node.name, expanded.ends);
    }
  }
  for (const [from, out] of edgesOf(definition)) {
    const source = ends.get(from)?.exit;
    for (const { to, guard } of out) {
      if (to === END && !ends.has(END)) {
        nodes.push(schemaNode(END));
        ends.set(END, { entry: END, exit: END });
      }
      const target = ends.get(to)?.entry;
      if (source === undefined || target === undefined) continue;
      edges.push({ source, target, conditional: guard === CONDITIONAL });
    }
  }
  return { nodes, edges };
}

const schemaNode = (id: string): DrawnNode => ({
  id,
  type: "schema",
  data: { $schema: "https://json-schema.org/draft/2020-12/schema" },
});

const dataOf = (name: string, isGraph: boolean) => ({ id: ["heddle", isGraph ? "Graph" : "Node"], name });

/**
 * Prepares the drawing of a subgraph for use in the drawing of its parent: removes its start and its end, each only if exactly one other
 * node can take its place. Undefined if the subgraph has only one node, or no single first node; it is then drawn as one node.
 */
function expand(drawn: GraphDrawing, name: string): { drawing: GraphDrawing; ends: Ends } | undefined {
  const inner = withoutEnd(withoutEnd(drawn, "target"), "source");
  const entry = singleEnd(inner, "target");
  if (inner.nodes.length < 2 || entry === undefined) return undefined;
  const id = (node: string) => `${name}:${node}`;
  const exit = singleEnd(inner, "source");
  return {
    drawing: {
      nodes: inner.nodes.map((node) => ({ ...node, id: id(node.id) })),
      edges: inner.edges.map((edge) => ({ ...edge, source: id(edge.source), target: id(edge.target) })),
    },
    ends: { entry: id(entry), exit: exit === undefined ? undefined : id(exit) },
  };
}

/**
 * Finds the only first node of a drawing (with `target`: no edge leads to it) or the only last node (with `source`: no edge leaves it).
 * Ignores the node `without` and its edges. Undefined if there is no such node, or more than one.
 */
function singleEnd(
  { nodes, edges }: GraphDrawing,
  side: "source" | "target",
  without?: string,
): string | undefined {
  const other = side === "target" ? "source" : "target";
  const met = new Set(edges.filter((edge) => edge[other] !== without).map((edge) => edge[side]));
  const found = nodes.filter(({ id }) => id !== without && !met.has(id));
  return found.length === 1 ? found[0]?.id : undefined;
}

/** Removes the first node (with `target`) or the last one (with `source`), if exactly one other node takes its place. */
function withoutEnd(drawing: GraphDrawing, side: "source" | "target"): GraphDrawing {
  const end = singleEnd(drawing, side);
  if (end === undefined || singleEnd(drawing, side, end) === undefined) return drawing;
  return {
    nodes: drawing.nodes.filter(({ id }) => id !== end),
    edges: drawing.edges.filter(({ source, target }) => source !== end && target !== end),
  };
}
