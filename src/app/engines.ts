import type { Config } from "../config/config.ts";
import { type LocalExecutorDeps, createInThreadNodeExecutor } from "../engine/in-thread-node-executor.ts";
import { logFailure } from "../engine/node-log.ts";
import { createNativeEngine } from "../engine/native-engine.ts";
import { combineEngines } from "../engine/combined-engine.ts";
import type { GraphRegistry } from "../graph/graph-registry.ts";
import { createLangGraphEngine, type LangGraphs } from "../langgraph/langgraph-engine.ts";
import { TypesReader } from "../graph-types/types-reader.ts";
import type { Engine } from "../ports/engine.ts";
import type { NodeExecutor } from "../ports/node-executor.ts";
import type { Scheduler } from "../ports/scheduler.ts";
import { entryUrl } from "../graph-loader/own-package-paths.ts";
import { startWorker } from "../platform/worker-thread.ts";
import { startWorkerPool } from "../workers/worker-pool.ts";

/** The maximum heap of the worker thread that reads the types of graphs, in megabytes. A graph with few packages needs about 250 MB. */
const TYPES_HEAP_MB = 1024;

export interface EngineSetup {
  readonly registry: GraphRegistry;
  /** The number of worker threads that run node functions. 0: node functions run in this thread. */
  readonly workers: number;
  /** The configuration file that names the graphs. Worker threads can load only the graphs of this file. */
  readonly config: Config | undefined;
  /** The names of the graphs that are served from the configuration file and may run in worker threads. */
  readonly loaded: readonly string[];
  readonly deps: LocalExecutorDeps & { readonly scheduler: Scheduler };
  /** Returns the compiled LangGraph.js graphs that are served now. */
  readonly langGraphs: LangGraphs;
}

/**
 * Opens the engine for Heddle's own graphs and LangGraph.js graphs, and the executor that runs their nodes.
 * @throws ServiceError `config.invalid` if a worker cannot load the graphs
 */
export async function openEngines(hosting: EngineSetup): Promise<{ engine: Engine; executor: NodeExecutor }> {
  const own = await openExecutor(hosting);
  const types = new TypesReader({
    ...hosting.deps,
    ...(hosting.config?.schemaTimeout !== undefined && { timeout: hosting.config.schemaTimeout }),
    spawn: () => startWorker(entryUrl("app/graph-types-worker-entry"), null, TYPES_HEAP_MB),
  });
  const { registry, langGraphs } = hosting;
  const { engine, executor } = combineEngines(
    { kind: "native", engine: createNativeEngine(registry, hosting.deps.scheduler), executor: own },
    {
      kind: "langgraph",
      ...createLangGraphEngine(langGraphs, (...failure) => logFailure(hosting.deps, ...failure), types),
    },
  );
  const close = async () => void (await Promise.all([own.close(), types.close()]));
  return { engine, executor: { run: (call, io) => executor.run(call, io), close } };
}

/**
 * Opens the executor that runs the node functions of Heddle's own graphs. A graph that was replaced after the workers loaded it runs in
 * this thread.
 * @throws ServiceError `config.invalid` if a worker cannot load the graphs
 */
async function openExecutor({ registry, workers, config, loaded, deps }: EngineSetup): Promise<NodeExecutor> {
  const local = createInThreadNodeExecutor(registry, deps);
  if (workers === 0 || config === undefined || loaded.length === 0) return local;
  const { path, graphs } = config;
  const editions = new Map(loaded.map((name) => [name, registry.current(name).edition]));
  return startWorkerPool({
    count: workers,
    spawn: () => startWorker(entryUrl("app/node-worker-entry"), { path, graphs, stacks: deps.stacks }),
    local,
    serves: ({ graph, edition }) => editions.get(graph) === edition,
    scheduler: deps.scheduler,
    logger: deps.logger,
  });
}
