import type { Engine, EngineKind } from "../ports/engine.ts";
import type { NodeExecutor } from "../ports/node-executor.ts";

/** An engine and the executor that runs the node functions of its graphs. */
export interface EngineAndExecutor {
  readonly kind: EngineKind;
  readonly engine: Engine;
  readonly executor: Pick<NodeExecutor, "run">;
}

/**
 * Combines two engines: a call goes to the second engine if only the second engine has the graph, else to the first.
 */
export function combineEngines(
  first: EngineAndExecutor,
  second: EngineAndExecutor,
): Pick<EngineAndExecutor, "engine" | "executor"> {
  const of = (graph: string): EngineAndExecutor =>
    !first.engine.has(graph) && second.engine.has(graph) ? second : first;
  return {
    engine: {
      has: (graph) => of(graph).engine.has(graph),
      graphs: () => [...new Set([...first.engine.graphs(), ...second.engine.graphs()])],
      chart: (graph) => of(graph).engine.chart?.(graph),
      drawing: (graph, ...rest) => of(graph).engine.drawing(graph, ...rest),
      schemas: (graph, config) => of(graph).engine.schemas(graph, config),
      subgraphs: (graph, config) => of(graph).engine.subgraphs(graph, config),
      isSubgraph: (graph, ns, node) => of(graph).engine.isSubgraph(graph, ns, node),
      recordsEvents: (run) => of(run.graph_id).engine.recordsEvents?.(run) ?? false,
      takesEvents: (graph) => of(graph).engine.takesEvents?.(graph) ?? false,
      refusesEvent: (graph, event) => of(graph).engine.refusesEvent?.(graph, event),
      acceptedEvents: (graph, values) => of(graph).engine.acceptedEvents?.(graph, values) ?? null,
      parseRun: (run, values) => of(run.graph_id).engine.parseRun?.(run, values),
      open: (run, ...rest) => of(run.graph_id).engine.open(run, ...rest),
      update: (asked, ...rest) => of(asked.graph).engine.update(asked, ...rest),
      output: (graph) => of(graph).engine.output(graph),
      migratedQuestion: (graph, values) => of(graph).engine.migratedQuestion?.(graph, values) ?? null,
      continuationError: (graph, ...rest) => of(graph).engine.continuationError?.(graph, ...rest) ?? null,
      refuses: (run, ...rest) => of(run.graph_id).engine.refuses(run, ...rest),
    },
    // Uses the executor of the engine that opened the run. A reload may have moved the graph's name to the other engine since
    // then, or removed it.
    executor: { run: (call, io) => (call.engine === second.kind ? second : first).executor.run(call, io) },
  };
}
