import { AsyncResource } from "node:async_hooks";
import type { StreamEvent } from "@langchain/core/tracers/log_stream";
import { isResume } from "../graph/interrupts.ts";
import { ServiceError } from "../model/errors.ts";
import type { InterruptsByTask } from "../model/interrupt.ts";
import type { JsonObject } from "../model/json.ts";
import type { Engine, NodeCall, RunRefusal, UnadmittedRun } from "../ports/engine.ts";
import type { GraphTypesReader } from "../ports/graph-type-schemas.ts";
import type { NodeExecutor, NodeIo } from "../ports/node-executor.ts";
import { NodeCallContext } from "./intercepted-call.ts";
import { statechartOfOutline } from "../graph/graph-as-statechart.ts";
import { langGraphDrawing, langGraphOutline } from "./graph-drawing.ts";
import { HostedExecution, type DriveGraph } from "./hosted-execution.ts";
import { copyGraph, interceptNodes, compiledGraphAt, TAG_HIDDEN } from "./node-interception.ts";
import { answerRefusal, langGraphInput, streamOptionsOf, requestsLangChainEvents } from "./run-invocation.ts";
import type { LangGraphLibrary } from "./user-library.ts";
import type { CompiledGraph, LoadedLangGraph } from "./exported-graph.ts";
import type { FactoryRuntime } from "./factory-runtime.ts";
import { createAttemptSaver } from "./checkpoint-saver.ts";
import { createBaseStore, AttemptStoreAccess } from "./base-store.ts";
import { schemasWithTypes, type ReadTypes, subgraphSchemas } from "./graph-schemas.ts";
import { computeStateUpdate } from "./state-update.ts";

/** Returns the graphs that are served now, by name. */
export type LangGraphs = () => ReadonlyMap<string, LoadedLangGraph>;

/**
 * Called when a node function has thrown an error, unless the task was stopped or the error comes from a graph that the function called.
 * `at`: the time of the error, in epoch milliseconds.
 */
export type OnFailure = (
  call: NodeCall,
  io: NodeIo,
  failure: { readonly thrown: unknown; readonly at: number },
) => void;

/**
 * Creates an engine for compiled LangGraph.js graphs, and the executor that runs their node functions.
 * @param types reads the TypeScript types of graphs for their JSON Schemas. Absent: the schemas do not use types
 */
export function createLangGraphEngine(graphs: LangGraphs, failed: OnFailure, types?: GraphTypesReader) {
  const scopes = new NodeCallContext();
  // The asynchronous context for runs and state updates. A run that a node starts must not inherit the context of that node.
  const outside = new AsyncResource("LangGraphRun");
  const hosted = new WeakMap<CompiledGraph, CompiledGraph>();
  /** The executions of current attempts, by run id. */
  const open = new Map<string, HostedExecution>();

  function hostedOf(library: LangGraphLibrary, graph: CompiledGraph): CompiledGraph {
    const known = hosted.get(graph) ?? interceptNodes(library, graph, scopes.intercept);
    hosted.set(graph, known);
    return known;
  }

  const storesByExecution = new WeakMap<HostedExecution, AttemptStoreAccess>();
  function storeAccessOf(execution: HostedExecution): AttemptStoreAccess {
    const storeAccess = storesByExecution.get(execution) ?? new AttemptStoreAccess();
    storesByExecution.set(execution, storeAccess);
    return storeAccess;
  }

  function found(name: string): LoadedLangGraph {
    const loaded = graphs().get(name);
    if (loaded !== undefined) return loaded;
    throw new ServiceError("graph.not_found", `There is no graph "${name}"`);
  }

  const typesOf =
    ({ source }: LoadedLangGraph): ReadTypes =>
    async () =>
      source === undefined || types === undefined ? null : types.read(source);

  const engine: Engine = {
    has: (graph) => graphs().has(graph),
    graphs: () => [...graphs().keys()],
    chart(name) {
      const loaded = graphs().get(name);
      return loaded === undefined ? undefined : statechartOfOutline(langGraphOutline(loaded.graph), name);
    },
    async drawing(name, levels, config) {
      return langGraphDrawing(await found(name).graphFor(config), levels);
    },
    async schemas(name, config) {
      const loaded = found(name);
      return schemasWithTypes(loaded.library, await loaded.graphFor(config), name, typesOf(loaded));
    },
    async subgraphs(name, config) {
      const loaded = found(name);
      const served = new Map([...graphs()].map(([known, { graph }]) => [graph, known]));
      return subgraphSchemas(loaded.library, await loaded.graphFor(config), served, typesOf(loaded));
    },
    isSubgraph(name, ns, node) {
      const graph = graphs().get(name)?.graph;
      return graph !== undefined && compiledGraphAt(graph, ns === "" ? node : `${ns}|${node}`) !== undefined;
    },
    output: () => null,
    async update(asked, position, source) {
      const loaded = found(asked.graph);
      const graph = await loaded.graphFor({ configurable: {} }, UPDATING);
      return outside.runInAsyncScope(() =>
        computeStateUpdate(loaded, hostedOf(loaded.library, graph), asked, position, source),
      );
    },
    refuses: (run, interrupts, _, unfinished = false) => refuses(run, interrupts, unfinished),
    recordsEvents: requestsLangChainEvents,
    open(run, position, source, stage) {
      const loaded = found(run.graph_id);
      const { library } = loaded;
      const drive: DriveGraph = async (execution, signal) => {
        const { durability } = run.kwargs;
        const saver = createAttemptSaver(library, run.thread_id, execution.events, durability === "exit");
        const work = async () => {
          try {
            const { config, context } = run.kwargs;
            const made = await untilAborted(loaded.graphFor(config, runtimeOf(context)), signal);
            const graph = copyGraph(hostedOf(library, made));
            graph.checkpointer = saver;
            graph.store = createBaseStore(library, storeAccessOf(execution));
            await follow(graph, execution, signal);
          } catch (error) {
            execution.events.finished({ error });
          } finally {
            if (open.get(run.run_id) === execution) open.delete(run.run_id);
          }
        };
        await outside.runInAsyncScope(() => scopes.run(execution.events, work));
      };
      const execution = new HostedExecution(run, position, loaded, { source, stage, drive });
      open.set(run.run_id, execution);
      return execution;
    },
  };

  const executor: Pick<NodeExecutor, "run"> = {
    async run(call, io) {
      const execution = open.get(call.run);
      if (execution === undefined) throw new TypeError(`Run ${call.run} is not at work`);
      const fail = (failure: Parameters<OnFailure>[2]) => failed(call, io, failure);
      return storeAccessOf(execution).during(io, () => execution.runBody(call.task, io, fail));
    },
  };

  return { engine, executor };
}

/** Resolves with the graph that a factory makes. Rejects if the signal is aborted first, because a factory may never return. */
async function untilAborted(
  made: CompiledGraph | Promise<CompiledGraph>,
  signal: AbortSignal,
): Promise<CompiledGraph> {
  if (!(made instanceof Promise)) return made;
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason as Error);
    signal.addEventListener("abort", abort, { once: true });
    made.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}

const UPDATING: FactoryRuntime = { accessContext: "threads.update", executionRuntime: null };

const runtimeOf = (context: JsonObject): FactoryRuntime => ({
  accessContext: "threads.create_run",
  executionRuntime: { context: Object.keys(context).length > 0 ? context : undefined },
});

/** Runs the graph to its end, and queues each event of its stream. */
async function follow(graph: CompiledGraph, execution: HostedExecution, signal: AbortSignal): Promise<void> {
  const { run, position, hosted } = execution;
  let failure: { readonly error: unknown } | null = null;
  try {
    const input = langGraphInput(hosted.library, run, position);
    const options = streamOptionsOf(run, position, signal);
    const chunks = requestsLangChainEvents(run)
      ? chunksBesideEvents(graph, input, options, (event) => execution.events.event(event))
      : chunksOf(hosted.library, graph, input, options);
    for await (const [ns, mode, payload] of chunks) execution.events.chunk(ns, mode, payload);
  } catch (error) {
    failure = { error };
  }
  await execution.events.whenDelivered();
  if (!execution.events.over) {
    execution.recordLastCheckpoints();
    await lookAhead(graph, execution);
  }
  execution.events.finished(failure);
}

type Chunk = readonly [ns: readonly string[], mode: string, payload: unknown];

/**
 * The chunks that a graph streams. Calls `_streamIterator`, on which every runnable's `stream` is built, because `stream` would pass each
 * chunk through three nested web streams and race it against the signal.
 */
function chunksOf(
  { runnables }: LangGraphLibrary,
  graph: CompiledGraph,
  input: unknown,
  options: ReturnType<typeof streamOptionsOf>,
): AsyncIterable<Chunk> {
  // oxlint-disable-next-line no-underscore-dangle -- LangGraph's own name for it
  return graph._streamIterator(input, runnables.ensureConfig(options)) as unknown as AsyncIterable<Chunk>;
}

/**
 * The chunks of a run that also requests LangChain's events. `onEvent` is called with each event, between the chunks that come before and
 * after the event.
 */
async function* chunksBesideEvents(
  graph: CompiledGraph,
  input: unknown,
  options: ReturnType<typeof streamOptionsOf>,
  onEvent: (event: StreamEvent) => void,
): AsyncGenerator<Chunk> {
  for await (const event of graph.streamEvents(input as never, { ...options, version: "v2" as const })) {
    const { run_id, tags = [], data } = event;
    if (tags.includes(TAG_HIDDEN)) continue;
    if (event.event === "on_chain_stream" && run_id === options.runId) yield data.chunk as Chunk;
    else onEvent(event);
  }
}

/** Reads the next tasks of graphs that have stopped right after a checkpoint, so that they are stored with the checkpoint. */
async function lookAhead(graph: CompiledGraph, execution: HostedExecution): Promise<void> {
  for (const loop of execution.graphsWithUnknownNext) {
    const checkpointConfig = {
      thread_id: execution.run.thread_id,
      checkpoint_ns: loop.ns,
      checkpoint_id: loop.id,
    };
    // oxlint-disable-next-line no-await-in-loop -- there is one such graph, or after a failure one at each level
    const { tasks } = await graph.getState({ configurable: checkpointConfig });
    loop.addNextTasks(tasks as Parameters<typeof loop.addNextTasks>[0]);
  }
}

/** The reason to refuse a run before it is admitted; null if it is not refused. */
function refuses(
  { kwargs }: UnadmittedRun,
  interrupts: InterruptsByTask | null,
  unfinished: boolean,
): RunRefusal | null {
  const { command, config } = kwargs;
  if (command === null || !isResume(command) || interrupts === null) return null;
  // The run answers interrupts of an older checkpoint. They are not known here, so the answer is checked when the run starts.
  if (typeof config.configurable.checkpoint_id === "string") return null;
  const pending = [...new Set(Object.values(interrupts).flatMap((all) => all.map(({ id }) => id)))];
  return answerRefusal(kwargs, pending, unfinished);
}
