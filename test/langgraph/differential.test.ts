import { RunnableLambda } from "@langchain/core/runnables";
import { Annotation, Command, MemorySaver, START, StateGraph } from "@langchain/langgraph";
import { Client } from "@langchain/langgraph-sdk";
import { expect, test } from "vitest";
import { agent } from "../conformance/agent.ts";
import { branches } from "../conformance/branches.ts";
import { chat } from "../conformance/chat.ts";
import { failing } from "../conformance/failing.ts";
import { nested } from "../conformance/nested.ts";
import { questions } from "../conformance/questions.ts";
import { serve } from "../e2e/support/server.ts";
import { agent as booking } from "../fixtures/langgraph/agent.ts";
import { rich } from "./graphs.ts";
import { normal, normalEvent, normalState, numbered, type Shown } from "./normal.ts";
import { served } from "./support.ts";

const modes = ["values", "updates", "checkpoints", "tasks", "debug", "custom", "messages"] as const;

const invocations = [
  { input: { messages: [{ role: "user", content: "hi" }] } },
  { command: { resume: "one" } },
  { command: { resume: "two" } },
] as const;

type Graph = ReturnType<ReturnType<typeof rich>["compile"]>;

/** A request for a run: an input, or an answer. */
interface Asked {
  readonly input?: Record<string, unknown>;
  readonly command?: { readonly resume: unknown };
}

const said = { messages: [{ role: "user", content: "hi", id: "h1" }] };

/** Each graph with its inputs, which run in sequence on one thread. */
const graphs: { readonly [name: string]: readonly [graph: unknown, asked: readonly Asked[]] } = {
  rich: [rich().compile(), invocations],
  chat: [chat, [{ input: said }]],
  agent: [agent, [{ input: said }]],
  booking: [booking, [{ input: said }, { command: { resume: true } }]],
  branches: [branches, [{ input: { topic: "x" } }]],
  failing: [failing, [{ input: { topic: "x" } }]],
  nested: [nested, [{ input: { topic: "ask" } }, { command: { resume: "yes" } }]],
  questions: [questions, [{ input: { topic: "x" } }]],
};

/** A copy of a graph with LangGraph's own saver. */
function overMemory(given: unknown): Graph {
  const graph = (given as Graph).withConfig({}) as Graph;
  graph.checkpointer = new MemorySaver();
  return graph;
}

const inputOf = ({ input, command }: Asked) => (input ?? new Command(command ?? {})) as never;

/** Runs the graph in this process. */
async function inProcess(given: unknown, asked: readonly Asked[]) {
  const graph = overMemory(given);
  const config = { configurable: { thread_id: "0190c6f8-5c5e-7000-8000-000000000001" } };
  const streams: unknown[] = [];
  for (const one of asked) {
    const shown: unknown[] = [];
    const options = { ...config, streamMode: [...modes], subgraphs: true as const };
    // oxlint-disable no-await-in-loop -- each chunk of the stream is compared in order
    for await (const chunk of await graph.stream(inputOf(one), options)) {
      const [ns, mode, data] = chunk as unknown as [string[], string, unknown];
      shown.push(normal({ mode, ns: ns.join("|"), data }));
    }
    streams.push(shown);
  }
  const history: unknown[] = [];
  for await (const state of graph.getStateHistory(config)) history.push(normalState(state as never));
  const state = normalState((await graph.getState(config)) as never);
  return { streams, state, history };
}

async function hosted(graph: unknown, asked: readonly Asked[]) {
  const app = await serve({ langGraphs: await served({ graph }) });
  const client = new Client({ apiUrl: app.url });
  const { thread_id } = await client.threads.create();
  const streams: unknown[] = [];
  const streamMode = modes.map((mode) => (mode === "messages" ? "messages-tuple" : mode));
  for (const one of asked) {
    const shown: unknown[] = [];
    const payload = { ...one, streamMode: streamMode as never, streamSubgraphs: true };
    for await (const { event, data } of client.runs.stream(thread_id, "graph", payload)) {
      const [mode = "", ...ns] = event.split("|");
      if (mode !== "metadata") shown.push(normal({ mode, ns: ns.join("|"), data } as Shown));
    }
    streams.push(shown);
  }
  const history = (await client.threads.getHistory(thread_id, { limit: 100 })).map((state) =>
    normalState(state as never),
  );
  const state = normalState((await client.threads.getState(thread_id)) as never);
  expect(app.complaints).toEqual([]);
  return { streams, state, history };
}

/** // A failing stream in this process drops the chunks that have not been read yet. */
const ending = Object.keys(graphs).filter((name) => name !== "failing");

test.each(ending)("%s: every stream mode, its state and history are as in process", async (name) => {
  const [graph, asked] = graphs[name] as (typeof graphs)[string];
  const [here, there] = [await inProcess(graph, asked), await hosted(graph, asked)];
  if (name === "rich") expect(here.streams.map((shown) => (shown as unknown[]).length)).toEqual([68, 18, 38]);
  for (const [i] of asked.entries()) expect(numbered(there.streams[i])).toEqual(numbered(here.streams[i]));
  expect(numbered(there)).toEqual(numbered(here));
});

test("a planned task has no result before it has run, in the mode debug alone as well", async () => {
  const app = await serve({ langGraphs: await served({ branches }) });
  const client = new Client({ apiUrl: app.url });
  const { thread_id } = await client.threads.create();
  const planned: [name: string, result: unknown][] = [];
  for await (const { event, data } of client.runs.stream(thread_id, "branches", {
    input: { topic: "x" },
    streamMode: "debug",
  })) {
    const { type, payload } = data as {
      type?: string;
      payload: { tasks: { name: string; result?: unknown }[] };
    };
    if (event === "debug" && type === "checkpoint")
      planned.push(...payload.tasks.map(({ name, result }): [string, unknown] => [name, result]));
  }
  expect(planned.map(([name]) => name)).toEqual([
    "__start__",
    "begin",
    "left",
    "silent",
    "spread",
    "worker",
    "worker",
    "gather",
    "last",
  ]);
  expect(planned.filter(([, result]) => result !== undefined)).toEqual([]);
});

/** The events of the graph's `streamEvents`, without the chunks of its own stream, which are the other modes. */
async function langChainEvents(given: unknown, asked: readonly Asked[]): Promise<readonly unknown[]> {
  const graph = overMemory(given);
  const told: unknown[] = [];
  for (const one of asked) {
    const config = {
      configurable: { thread_id: "one" },
      streamMode: ["debug" as const],
      version: "v2" as const,
    };
    try {
      for await (const event of graph.streamEvents(inputOf(one), config)) {
        const isHidden = event.tags?.includes("langsmith:hidden");
        if (!isHidden && event.event !== "on_chain_stream") told.push(event);
      }
    } catch (thrown) {
      told.push(thrown);
    }
  }
  // Afterwards, because messages get their ids when they enter the state.
  return told.map((one) => (one instanceof Error ? ["error", one.message] : normalEvent(one)));
}

test.each(Object.keys(graphs))("events of %s: what LangChain's streamEvents tells", async (name) => {
  const [graph, asked] = graphs[name] as (typeof graphs)[string];
  const app = await serve({ langGraphs: await served({ graph }) });
  const client = new Client({ apiUrl: app.url });
  const { thread_id } = await client.threads.create();
  const told: unknown[] = [];
  for (const body of asked) {
    const payload = { ...body, streamMode: ["events" as const] };
    for await (const part of client.runs.stream(thread_id, "graph", payload)) {
      const { event, data }: { readonly event: string; readonly data: unknown } = part;
      if (event === "events") told.push(normalEvent(data));
      else if (event === "error") told.push(["error", (data as Error).message]);
    }
  }
  expect(numbered(told)).toEqual(numbered(await langChainEvents(graph, asked)));
});

test("events whose data cannot be stored are told without them, and the run goes on", async () => {
  const circular: { self?: unknown } = {};
  circular.self = circular;
  const step = RunnableLambda.from(() => "done").withConfig({ runName: "odd" });
  const graph = new StateGraph(Annotation.Root({ log: Annotation<string> }))
    .addNode("node", async () => ({ log: await step.invoke(circular) }))
    .addEdge(START, "node")
    .compile();
  const app = await serve({ langGraphs: await served({ graph }) });
  const client = new Client({ apiUrl: app.url });
  const told: unknown[] = [];
  for await (const { data } of client.runs.stream(null, "graph", { input: {}, streamMode: ["events"] })) {
    const { event, name, data: shown } = data as { event?: string; name?: string; data?: unknown };
    if (name === "odd" || event === "on_chain_end") told.push([event, name, shown]);
  }
  expect(told).toEqual([
    ["on_chain_start", "odd", {}],
    ["on_chain_end", "odd", {}],
    ["on_chain_end", "node", { input: {}, output: { log: "done" } }],
    ["on_chain_end", "LangGraph", { output: { log: "done" } }],
  ]);
});
