import type { Engine } from "../ports/engine.ts";
import type { Scheduler } from "../ports/scheduler.ts";
import { statechartOfGraph } from "../graph/graph-as-statechart.ts";
import { subgraphDefinitionAt } from "../graph/definition.ts";
import { drawDefinition } from "../graph/graph-drawing.ts";
import type { GraphRegistry } from "../graph/graph-registry.ts";
import { definitionSchemas, subgraphsByPath } from "../graph/graph-schemas.ts";
import type { GraphSchemas } from "../model/graph-schemas.ts";
import { NativeExecution } from "./native-execution.ts";
import { SuperstepState } from "./superstep-state.ts";
import { machineContinuationError } from "./graph-migration.ts";
import { parseMachineRun, validateRun } from "./run-validation.ts";
import { computeUpdatedState } from "./compute-state-update.ts";

/**
 * Heddle's own engine: runs graphs made by `graph()` in supersteps. It has no side effects, and executions share no state.
 * @param scheduler limits the time of asynchronous schemas
 */
export function createNativeEngine(registry: GraphRegistry, scheduler: Scheduler): Engine {
  return {
    has: (graph) => registry.has(graph),
    graphs: () => registry.names(),
    chart: (graph) => {
      if (!registry.has(graph)) return undefined;
      const definition = registry.get(graph);
      return definition.machine?.chart(graph) ?? statechartOfGraph(definition, graph);
    },
    drawing: (graph, levels) => {
      const definition = registry.get(graph);
      return definition.machine?.drawing() ?? drawDefinition(definition, levels);
    },
    schemas: (graph) => definitionSchemas(registry.get(graph), graph),
    subgraphs: (graph) => subgraphSchemas(registry, graph),
    isSubgraph: (graph, ns, node) => isSubgraph(registry, graph, ns, node),
    takesEvents: (graph) => registry.has(graph) && registry.get(graph).machine !== undefined,
    refusesEvent: (graph, event) =>
      registry.has(graph) ? registry.get(graph).machine?.refusesEvent(event) : undefined,
    acceptedEvents: (graph, values) =>
      registry.has(graph) ? (registry.get(graph).machine?.acceptedEvents(values) ?? null) : null,
    migratedQuestion: (graph, values) =>
      registry.has(graph) ? (registry.get(graph).machine?.migratedQuestion(values) ?? null) : null,
    continuationError: (graph, head, values) =>
      registry.has(graph) ? machineContinuationError(registry.get(graph), head, values) : null,
    parseRun: (run, values) =>
      registry.has(run.graph_id)
        ? parseMachineRun(registry.get(run.graph_id), run, values, scheduler)
        : undefined,
    open: (run, position, source) => {
      const { definition, edition } = registry.current(run.graph_id);
      return new NativeExecution(new SuperstepState(definition, run, position, source), edition);
    },
    update: (asked, position, source) =>
      computeUpdatedState(registry.get(asked.graph), asked, position, source),
    output: (graph) => (registry.has(graph) ? registry.get(graph).output : null),
    refuses: (run, interrupts, blank = false) =>
      registry.has(run.graph_id) ? validateRun(registry.get(run.graph_id), run, interrupts, blank) : null,
  };
}

function subgraphSchemas(registry: GraphRegistry, graph: string): ReadonlyMap<string, GraphSchemas> {
  const found = new Map<string, GraphSchemas>();
  for (const [path, definition] of subgraphsByPath(registry.get(graph))) {
    const served = registry.names().find((name) => registry.get(name) === definition);
    found.set(path, definitionSchemas(definition, served ?? definition.name ?? lastOf(path)));
  }
  return found;
}

const lastOf = (path: string) => path.slice(path.lastIndexOf("|") + 1);

function isSubgraph(registry: GraphRegistry, graph: string, ns: string, node: string): boolean {
  try {
    return (subgraphDefinitionAt(registry.get(graph), ns).nodes.get(node)?.graph ?? null) !== null;
  } catch {
    // The graph no longer has a subgraph at this namespace.
    return false;
  }
}
