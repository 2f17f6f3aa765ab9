import { Command, MemorySaver } from "@langchain/langgraph";
import { Client } from "@langchain/langgraph-sdk";
import { expect, test } from "vitest";
import { serve } from "../e2e/support/server.ts";
import { rich } from "./graphs.ts";
import { normal, normalState, numbered, type Shown } from "./normal.ts";
import { served } from "./support.ts";

const modes = ["values", "updates", "checkpoints", "tasks", "debug", "custom", "messages"] as const;

const invocations = [
  { input: { messages: [{ role: "user", content: "hi" }] } },
  { command: { resume: "one" } },
  { command: { resume: "two" } },
] as const;

/** The graph in this process, over LangGraph's own saver. */
async function inProcess() {
  const graph = rich().compile({ checkpointer: new MemorySaver() });
  const config = { configurable: { thread_id: "0190c6f8-5c5e-7000-8000-000000000001" } };
  const streams: unknown[] = [];
  for (const asked of invocations) {
    const input = "input" in asked ? asked.input : new Command(asked.command);
    const shown: unknown[] = [];
    // oxlint-disable no-await-in-loop -- one after the other
    for await (const chunk of await graph.stream(input as never, {
      ...config,
      streamMode: [...modes],
      subgraphs: true,
    })) {
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

async function hosted() {
  const app = await serve({ langGraphs: await served({ rich: rich().compile() }) });
  const client = new Client({ apiUrl: app.url });
  const { thread_id } = await client.threads.create();
  const streams: unknown[] = [];
  for (const asked of invocations) {
    const shown: unknown[] = [];
    const streamMode = modes.map((mode) => (mode === "messages" ? "messages-tuple" : mode));
    for await (const { event, data } of client.runs.stream(thread_id, "rich", {
      ...asked,
      streamMode: streamMode as never,
      streamSubgraphs: true,
    })) {
      const [mode = "", ...ns] = event.split("|");
      if (mode === "metadata") continue;
      shown.push(normal({ mode, ns: ns.join("|"), data } as Shown));
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

test("three invocations, every stream mode with subgraphs, state and history: as in process", async () => {
  const [here, there] = [await inProcess(), await hosted()];
  expect(here.streams.map((shown) => (shown as unknown[]).length)).toEqual([68, 18, 38]);
  for (const [i] of invocations.entries())
    expect(numbered(there.streams[i])).toEqual(numbered(here.streams[i]));
  expect(numbered(there)).toEqual(numbered(here));
});
