import { type BaseStore, Command, InMemoryStore, MemorySaver, type Pregel } from "@langchain/langgraph";
import { Client } from "@langchain/langgraph-sdk";
import { expect } from "vitest";
import { serve } from "../e2e/support/server.ts";
import { toStateObject } from "../../src/langgraph/graph-progress.ts";
import { normal, normalState, type Shown } from "./normal.ts";
import { served } from "./support.ts";

/** An operation on a graph that both LangGraph.js itself and the API support. */
export interface Deed {
  readonly input?: unknown;
  readonly command?: object;
  /** Runs from the newest checkpoint at which these nodes are next. */
  readonly from?: readonly string[];
  /** Changes the state (there), instead of a run. */
  readonly update?: { readonly values: unknown; readonly asNode?: string };
  readonly interruptBefore?: string[];
  readonly interruptAfter?: string[];
  readonly recursionLimit?: number;
  readonly configurable?: object;
  readonly context?: object;
  readonly durability?: "async" | "sync" | "exit";
}

/** What was observed: the stream of each operation, then the state and its history. */
export interface Seen {
  readonly streams: readonly (readonly unknown[])[];
  readonly state: unknown;
  readonly history: readonly unknown[];
}

// oxlint-disable-next-line typescript/no-explicit-any -- a graph with any state
export type Graph = Pregel<any, any>;

const MODES = ["values", "updates", "checkpoints", "tasks", "debug", "custom", "messages"] as const;
const THREAD = "0190c6f8-5c5e-7000-8000-000000000001";

/** Drives the graph in this process, with LangGraph's own saver. */
export async function inProcess(make: () => Graph, deeds: readonly Deed[]): Promise<Seen> {
  const graph = make();
  graph.checkpointer = new MemorySaver();
  graph.store = new InMemoryStore() as BaseStore;
  const place = { configurable: { thread_id: THREAD } };
  const states = async () => {
    const all: { readonly next: readonly string[]; readonly config: object }[] = [];
    for await (const state of graph.getStateHistory(place)) all.push(state as never);
    return all;
  };
  const streams: unknown[][] = [];
  for (const { input = null, command, from, update, configurable, ...options } of deeds) {
    // oxlint-disable no-await-in-loop -- each invocation continues from the state of the one before
    const start = from && (await states()).find(({ next }) => String(next) === String(from))?.config;
    if (from) expect(start).toBeDefined();
    const config = start ?? place;
    const shown: unknown[] = [];
    try {
      if (update !== undefined) await graph.updateState(config, update.values as never, update.asNode);
      else {
        const asked = {
          ...options,
          configurable: { ...configurable, ...(config as typeof place).configurable },
          streamMode: [...MODES],
          subgraphs: true,
        };
        const given = command === undefined ? input : new Command(command);
        for await (const chunk of await graph.stream(given as never, asked as never)) {
          const [ns, mode, data] = chunk as unknown as [string[], string, unknown];
          shown.push(normal({ mode, ns: ns.join("|"), data: asShown(mode, data) }));
        }
      }
    } catch (error) {
      shown.push(["error", update === undefined ? (error as Error).name : "refused"]);
    }
    streams.push(shown);
  }
  return {
    streams,
    state: stateAt((await graph.getState(place)) as never),
    history: (await states()).map(past),
  };
}

const stateAt = (state: object) =>
  normalState({ ...state, values: toStateObject((state as { readonly values?: unknown }).values) });

/**
 * In LangGraph, too, it depends on the parallel tasks whether an older state still shows a question that has since been
 * answered.
 */
function past(state: object): unknown {
  const { tasks, ...rest } = stateAt(state) as { readonly tasks: readonly { readonly asked?: unknown }[] };
  return { ...rest, tasks: tasks.map((task) => ({ ...task, asked: undefined })) };
}

/** Clients see a state as an object, even with the functional API. */
function asShown(mode: string, data: unknown): unknown {
  if (mode === "values") return toStateObject(data);
  const { payload, values } = data as { readonly payload?: unknown; readonly values?: unknown };
  if (mode === "debug") return { ...(data as object), payload: asShown("checkpoints", payload) };
  return mode === "checkpoints" && values !== undefined
    ? { ...(data as object), values: toStateObject(values) }
    : data;
}

/** Drives the same graph in Heddle, through the API. */
export async function hosted(make: () => Graph, deeds: readonly Deed[]): Promise<Seen> {
  const app = await serve({ langGraphs: await served({ graph: make() }) });
  const client = new Client({ apiUrl: app.url });
  const { thread_id } = await client.threads.create();
  const states = () => client.threads.getHistory(thread_id, { limit: 1000 });
  const streamMode = MODES.map((mode) => (mode === "messages" ? "messages-tuple" : mode)) as never;
  const streams: unknown[][] = [];
  for (const { from, update, configurable, recursionLimit, ...asked } of deeds) {
    const start = from && (await states()).find(({ next }) => String(next) === String(from));
    const checkpointId = start?.checkpoint.checkpoint_id as string;
    const shown: unknown[] = [];
    if (update !== undefined) {
      const changed = { ...update, ...(from && { checkpointId }) } as never;
      await client.threads.updateState(thread_id, changed).catch(() => shown.push(["error", "refused"]));
    } else {
      const config = { configurable, ...(recursionLimit && { recursion_limit: recursionLimit }) };
      const payload = { ...asked, config, streamMode, streamSubgraphs: true, ...(from && { checkpointId }) };
      for await (const { event, data } of client.runs.stream(thread_id, "graph", payload as never)) {
        if (event === "metadata") continue;
        if (event === "error") shown.push(["error", (data as { error: string }).error]);
        else shown.push(told(event, data));
      }
    }
    streams.push(shown);
  }
  const state = stateAt(await client.threads.getState(thread_id));
  return { streams, state, history: (await states()).map(past) };
}

function told(event: string, data: unknown): unknown {
  const [mode = "", ...ns] = event.split("|");
  return normal({ mode, ns: ns.join("|"), data } as Shown);
}
