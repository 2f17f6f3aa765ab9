import { START } from "./definition-checks.ts";
import type { GraphDefinition } from "./definition.ts";
import { END } from "./commands.ts";

/** An edge of a graph as drawings show it. */
export interface OutlineEdge {
  readonly to: string;
  /** Present if the edge is taken only under a condition, which is evaluated during the run. */
  readonly guard?: string;
  readonly description?: string;
}

/** The name that drawings show as the guard of a conditional edge. */
export const CONDITIONAL = "chosen";

/**
 * The guard of the edges of a node that declares no targets. They are drawn to the end and to all nodes without another incoming edge; if
 * there are none, to all nodes.
 */
const UNDECLARED = {
  guard: CONDITIONAL,
  description: "chosen at run time; the graph does not declare where",
};

/** All edges, by the node where they start: `__start__` first, `__end__` last. */
export function edgesOf(definition: GraphDefinition): ReadonlyMap<string, readonly OutlineEdge[]> {
  const { nodes, edges } = definition;
  const out = new Map<string, OutlineEdge[]>([START, ...nodes.keys(), END].map((name) => [name, []]));
  const targeted = new Set<string>();
  const addEdge = (from: string, edge: OutlineEdge) => {
    targeted.add(edge.to);
    out.get(from)?.push(edge);
  };
  for (const [from, { kind, targets }] of edges) {
    for (const to of targets ?? []) addEdge(from, kind === "choice" ? { to, guard: CONDITIONAL } : { to });
  }
  for (const node of nodes.values()) {
    for (const from of node.after) {
      const others = node.after.filter((one) => one !== from);
      addEdge(from, {
        to: node.name,
        ...(others.length > 0 && { guard: `${others.join(", ")} done`, description: "waits for all" }),
      });
    }
  }
  const untargeted = [...nodes.keys()].filter((name) => !targeted.has(name));
  const undeclared = [...edges].filter(([, { targets }]) => targets === null).map(([from]) => from);
  const last = [...nodes.keys()].filter((name) => out.get(name)?.length === 0 && !undeclared.includes(name));
  for (const from of undeclared) {
    const to = untargeted.length > 0 ? untargeted : [...nodes.keys()];
    for (const one of [...to.filter((name) => name !== from), END])
      out.get(from)?.push({ to: one, ...UNDECLARED });
  }
  for (const from of last) {
    // The node's function may itself choose targets with `to` or `send`, so a node that no other edge reaches may follow.
    const to = undeclared.length === 0 && !untargeted.includes(from) ? untargeted : [];
    for (const one of to) out.get(from)?.push({ to: one, ...UNDECLARED });
    out.get(from)?.push({ to: END });
  }
  return out;
}
