import { Annotation, START, StateGraph } from "@langchain/langgraph";
import { RemoteGraph } from "@langchain/langgraph/remote";
import { Client } from "@langchain/langgraph-sdk";
import { expect, test } from "vitest";
import { WebSocket } from "ws";
import { serve } from "../e2e/support/server.ts";
import { served } from "./support.ts";
import { rich } from "./graphs.ts";

const State = Annotation.Root({
  log: Annotation<string[]>({ reducer: (a, b) => a.concat(b), default: () => [] }),
});

const echo = () =>
  new StateGraph(State)
    .addNode("echo", ({ log }) => ({ log: [`echo ${log.at(-1) ?? ""}`] }))
    .addEdge(START, "echo")
    .compile();

test("LangGraph's own RemoteGraph drives a hosted graph: invoke, stream, state", async () => {
  const app = await serve({ langGraphs: await served({ echo: echo() }) });
  const client = new Client({ apiUrl: app.url });
  const { thread_id } = await client.threads.create();
  const remote = new RemoteGraph({ graphId: "echo", url: app.url });
  const config = { configurable: { thread_id } };
  expect(await remote.invoke({ log: ["one"] }, config)).toEqual({ log: ["one", "echo one"] });
  const updates: unknown[] = [];
  for await (const chunk of await remote.stream({ log: ["two"] }, { ...config, streamMode: "updates" }))
    updates.push(chunk);
  expect(updates).toEqual([{ echo: { log: ["echo two"] } }]);
  expect((await remote.getState(config)).values).toEqual({ log: ["one", "echo one", "two", "echo two"] });
});

test("a hosted graph calls another one of the same server, over the wire, as a node", async () => {
  let url = "";
  // A separate thread: the thread of the surrounding run is busy.
  const config = { configurable: { thread_id: "" } };
  const outer = new StateGraph(State)
    .addNode("before", () => ({ log: ["before"] }))
    .addNode("other", async ({ log }) => {
      const remote = new RemoteGraph({ graphId: "echo", url });
      const { log: all } = (await remote.invoke({ log }, config)) as typeof State.State;
      return { log: [all.at(-1) ?? ""] };
    })
    .addEdge(START, "before")
    .addEdge("before", "other")
    .compile();
  const app = await serve({ langGraphs: await served({ echo: echo(), outer }) });
  ({ url } = app);
  const client = new Client({ apiUrl: app.url });
  const { thread_id } = await client.threads.create();
  config.configurable.thread_id = (await client.threads.create()).thread_id;
  expect(await client.runs.wait(thread_id, "outer", { input: { log: [] } })).toEqual({
    log: ["before", "echo before"],
  });
  expect(app.complaints).toEqual([]);
});

test("every node runs in an actor of its own, those of a graph within below the task that it is the node of", async () => {
  const app = await serve({ langGraphs: await served({ rich: rich().compile() }) });
  const client = new Client({ apiUrl: app.url });
  const { thread_id } = await client.threads.create();
  const seen = new Map<string, { name: string; parent: string }>();
  const socket = new WebSocket(`${app.url.replace("http", "ws")}/inspect?thread_id=${thread_id}`);
  const opened = new Promise((resolve) => socket.addEventListener("open", resolve));
  socket.addEventListener("message", ({ data }) => {
    const told = JSON.parse(String(data)) as {
      type: string;
      sessionId: string;
      parentId?: string;
      name?: string;
    };
    if (told.type === "@xstate.actor")
      seen.set(told.sessionId, { name: told.name ?? "", parent: told.parentId ?? "" });
  });
  await opened;
  await client.runs.wait(thread_id, "rich", { input: { messages: [] } });
  await client.runs.wait(thread_id, "rich", { command: { resume: "one" } });
  await client.runs.wait(thread_id, "rich", { command: { resume: "two" } });
  socket.close();
  const names = [...seen.values()].map(({ name }) => name);
  const count = (name: string) => names.filter((each) => each === name).length;
  expect([count("llm"), count("worker"), count("join"), count("sub"), count("ask"), count("last")]).toEqual([
    1, 3, 1, 1, 1, 1,
  ]);
  for (const { name, parent } of seen.values())
    if (name === "ask") expect(seen.get(parent)?.name).toBe("sub");
});
