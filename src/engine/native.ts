import type { Engine } from "../ports/engine.ts";
import { chartOf } from "../graph/chart.ts";
import { subgraphAt } from "../graph/definition.ts";
import type { GraphRegistry } from "../graph/registry.ts";
import { NativeExecution } from "./execution.ts";
import { Frame } from "./frame.ts";
import { refusalOf } from "./refusals.ts";

/** Heddle's own engine: graphs made by `graph()`, in supersteps. Pure; every execution stands alone. */
export function nativeEngine(registry: GraphRegistry): Engine {
  return {
    has: (graph) => registry.has(graph),
    graphs: () => registry.names(),
    chart: (graph) => (registry.has(graph) ? chartOf(registry.get(graph), graph) : undefined),
    isSubgraph: (graph, ns, node) => isSubgraph(registry, graph, ns, node),
    open: (run, position, source) => {
      const { definition, edition } = registry.current(run.graph_id);
      return new NativeExecution(new Frame(definition, run, position, source), edition);
    },
    output: (graph) => (registry.has(graph) ? registry.get(graph).output : null),
    refuses: (run, interrupts, blank = false) =>
      registry.has(run.graph_id) ? refusalOf(registry.get(run.graph_id), run, interrupts, blank) : null,
  };
}

function isSubgraph(registry: GraphRegistry, graph: string, ns: string, node: string): boolean {
  try {
    return (subgraphAt(registry.get(graph), ns).nodes.get(node)?.graph ?? null) !== null;
  } catch {
    // The graphs have changed since.
    return false;
  }
}
