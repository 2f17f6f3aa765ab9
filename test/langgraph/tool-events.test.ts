import { tool } from "@langchain/core/tools";
import type { RunnableConfig } from "@langchain/core/runnables";
import { interrupt, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { createReactAgent, ToolNode } from "@langchain/langgraph/prebuilt";
import { describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import { all, streamOf, transports } from "../e2e/support/protocol.ts";
import { serve } from "../e2e/support/server.ts";
import { events, get, newThread, post, type Sent } from "../e2e/support/wire.ts";
import { ScriptedModel } from "../conformance/scripted-model.ts";
import { toolNamespace } from "../../src/langgraph/tool-events.ts";
import { isBelow, served } from "./support.ts";

interface Place {
  readonly city: string;
}
const options = (name: string) => ({
  name,
  description: name,
  schema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] } as const,
});

/** Reports its progress. */
const search = tool(async function* ({ city }: Place) {
  yield { found: 1 };
  yield "half";
  return `Sunny in ${city}`;
}, options("search"));
const breaks = tool(({ city }: Place): string => {
  throw new TypeError(`no ${city}`);
}, options("breaks"));
const asks = tool(({ city }: Place) => `said ${interrupt<Place, string>({ city })}`, options("asks"));
const circular = tool(() => {
  const ring: Record<string, unknown> = {};
  ring["ring"] = ring;
  return ring;
}, options("circular"));
const measure = tool(({ city }: Place) => ({ city, sizes: [1, null] }), options("measure"));
/** The tools that nodes call themselves. */
const callable = { measure, breaks, circular } as unknown as Record<
  "measure" | "breaks" | "circular",
  { invoke(input: Place, config: RunnableConfig): Promise<unknown> }
>;

const agentOf = (name: string, tools: readonly unknown[] | ToolNode) =>
  createReactAgent({
    llm: new ScriptedModel([
      { text: "Let me look ", call: { name, args: { city: "Lisbon" } } },
      { text: "done" },
    ]),
    tools: tools as ToolNode,
  });

const graphs = {
  searching: agentOf("search", [search]),
  breaking: agentOf("breaks", [breaks]),
  failing: agentOf("breaks", new ToolNode([breaks], { handleToolErrors: false })),
  asking: agentOf("asks", [asks]),
  nested: new StateGraph(MessagesAnnotation)
    .addNode("sub", agentOf("search", [search]))
    .addEdge(START, "sub")
    .compile(),
  calling: new StateGraph(MessagesAnnotation)
    .addNode("sub", async (state, config) => {
      const { messages } = await agentOf("search", [search]).invoke(state, config);
      return { messages };
    })
    .addEdge(START, "sub")
    .compile(),
  // Calls tools by itself, without a tool call of a model.
  direct: new StateGraph(MessagesAnnotation)
    .addNode("plain", async (_, config: RunnableConfig) => {
      await callable.measure.invoke({ city: "hidden" }, { ...config, tags: ["langsmith:hidden"] });
      await callable.measure.invoke({ city: "a" }, config);
      await callable.breaks.invoke({ city: "b" }, config).catch(() => undefined);
      return { messages: [] };
    })
    .addEdge(START, "plain")
    .compile(),
  ring: new StateGraph(MessagesAnnotation)
    .addNode("plain", async (_, config: RunnableConfig) => {
      await callable.circular.invoke({ city: "a" }, config);
      return { messages: [] };
    })
    .addEdge(START, "plain")
    .compile(),
};

const input = { messages: [{ role: "user", content: "hi", id: "u1" }] };

async function start() {
  const { url, complaints } = await serve({ langGraphs: await served(graphs) });
  const run = async (assistant_id: string, more: object = {}, on?: string) => {
    const thread = on ?? (await newThread(url));
    const body = { assistant_id, stream_mode: ["tools"], input, ...more };
    const response = await post(`${url}/threads/${thread}/runs/stream`, body);
    const path = response.headers.get("content-location") ?? "";
    return { thread, path, all: events(await response.text()) };
  };
  return { url, run, complaints };
}

/** The events after the first, `metadata`, without ids of tasks and of messages. */
const shown = (all: readonly Sent[]) =>
  all.slice(1).map(({ event, data }) => {
    const name = event.replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/, "<id>");
    return [name, data];
  });

const call = { toolCallId: "call_0", name: "search" };
const lisbon = '{"city":"Lisbon"}';
/** The events of `search`, as the official server sends them: `@langchain/langgraph-api` 1.5.1. */
const searched = [
  { event: "on_tool_start", ...call, input: lisbon },
  { event: "on_tool_event", ...call, data: { found: 1 } },
  { event: "on_tool_event", ...call, data: "half" },
  {
    event: "on_tool_end",
    ...call,
    output: {
      type: "tool",
      status: "success",
      content: "Sunny in Lisbon",
      tool_call_id: "call_0",
      name: "search",
    },
  },
];
const under = (event: string, data: readonly object[]) =>
  data.map((one) => [event, expect.objectContaining(withOutput(one))]);
/** The output of a tool has members of LangChain's besides. */
const withOutput = (one: { readonly output?: object }) =>
  one.output === undefined ? one : { ...one, output: expect.objectContaining(one.output) as unknown };

const error = { name: "TypeError", message: "no Lisbon" };
const broken = { toolCallId: "call_0", name: "breaks" };

// LangGraph.js streams the calls of tools from 1.2 on.
describe.skipIf(isBelow(2))("the stream mode tools", () => {
  test("a call starts, reports its progress, and ends", async () => {
    const { run, complaints } = await start();
    expect(shown((await run("searching")).all)).toEqual(under("tools", searched));
    expect(complaints).toEqual([]);
  });

  test("a tool that fails says how, whether its node goes on or not", async () => {
    const { run } = await start();
    const failed = [
      ["tools", { event: "on_tool_start", ...broken, input: lisbon }],
      ["tools", { event: "on_tool_error", ...broken, error: expect.objectContaining(error) as unknown }],
    ];
    expect(shown((await run("breaking")).all)).toEqual(failed);
    const end = ["error", { error: "TypeError", message: "no Lisbon" }];
    expect(shown((await run("failing")).all)).toEqual([...failed, end]);
  });

  test("a tool that asks a question starts again with the answer, and ends", async () => {
    const { run } = await start();
    const asking = { toolCallId: "call_0", name: "asks" };
    const started = { event: "on_tool_start", ...asking, input: lisbon };
    const { all: whole, thread } = await run("asking");
    expect(shown(whole)).toEqual([["tools", started]]);
    const { all: rest } = await run("asking", { input: null, command: { resume: "yes" } }, thread);
    const output = { type: "tool", content: "said yes", tool_call_id: "call_0" };
    expect(shown(rest)).toEqual(under("tools", [started, { event: "on_tool_end", ...asking, output }]));
  });

  test.each(["nested", "calling"])(
    "%s: tools of a subgraph name its task, if they are asked for",
    async (name) => {
      const { run } = await start();
      expect(shown((await run(name)).all)).toEqual([]);
      const { all: whole } = await run(name, { stream_subgraphs: true });
      expect(shown(whole)).toEqual(under("tools|sub:<id>", searched));
    },
  );

  test("a tool that a node calls itself has no call of a model; a hidden one is not shown", async () => {
    const { run } = await start();
    expect(shown((await run("direct")).all)).toEqual([
      ["tools", { event: "on_tool_start", name: "measure", input: '{"city":"a"}' }],
      ["tools", { event: "on_tool_end", name: "measure", output: { city: "a", sizes: [1, null] } }],
      ["tools", { event: "on_tool_start", name: "breaks", input: '{"city":"b"}' }],
      ["tools", { event: "on_tool_error", name: "breaks", error: { name: "TypeError", message: "no b" } }],
    ]);
  });

  test("an output that has no JSON form is left out, and the run goes on", async () => {
    const { run } = await start();
    const { all: whole, path } = await run("ring");
    expect(shown(whole).at(-1)).toEqual(["tools", { event: "on_tool_end", name: "circular" }]);
    expect(path).not.toBe("");
  });

  test("is read again after any event, and over a WebSocket", async () => {
    const { url, run } = await start();
    const { path, all: whole } = await run("searching", { stream_resumable: true });
    for (const { id } of whole) {
      // oxlint-disable-next-line no-await-in-loop -- one reader after the other
      const rest = events(await (await get(`${url}${path}/stream`, { "last-event-id": id })).text());
      expect(rest).toEqual(whole.filter((one) => Number(one.id) > Number(id)));
    }
    const socket = new WebSocket(`${url.replace("http", "ws")}${path}/stream?stream_mode=tools`);
    const frames: unknown[] = [];
    await new Promise<void>((resolve, reject) => {
      socket.on("message", (bytes) => frames.push(JSON.parse(String(bytes))));
      socket.on("close", () => resolve());
      socket.on("error", reject);
    });
    expect(frames).toEqual(whole.map(({ id, event, data }) => ({ id, event, data })));
  });

  test("a run that does not ask for it records no calls", async () => {
    const { url, run } = await start();
    const { path } = await run("searching", { stream_mode: ["updates"] });
    const joined = await get(`${url}${path}/stream?stream_mode=tools`, { "last-event-id": "-1" });
    expect(events(await joined.text()).map(({ event }) => event)).toEqual(["metadata"]);
  });
});

describe.skipIf(isBelow(2)).each(transports)("tools in protocol v2 over %s", (transport) => {
  test("a call starts with the model's message, reports its progress, and ends", async () => {
    const { url } = await start();
    const { thread } = streamOf(url, transport, "searching");
    const subscription = await thread.subscribe({ channels: ["tools"] });
    await thread.run.start({ input });
    await thread.output;
    const got = (await all(subscription)).map((event) => (event as { params: { data: object } }).params.data);
    const started = { tool_call_id: "call_0" };
    expect(got).toMatchObject([
      { event: "tool-started", ...started, tool_name: "search", input: { city: "Lisbon" } },
      { event: "tool-output-delta", ...started, delta: '{"found":1}' },
      { event: "tool-output-delta", ...started, delta: "half" },
      { event: "tool-finished", ...started, output: { content: "Sunny in Lisbon" } },
    ]);
  });

  test("a tool that a node calls itself starts with its input as the tool gets it", async () => {
    const { url } = await start();
    const { thread } = streamOf(url, transport, "direct");
    const subscription = await thread.subscribe({ channels: ["tools"] });
    await thread.run.start({ input });
    await thread.output;
    const got = (await all(subscription)).map((event) => (event as { params: { data: object } }).params.data);
    expect(got).toEqual([
      { event: "tool-started", tool_call_id: "", tool_name: "measure", input: '{"city":"a"}' },
      { event: "tool-finished", tool_call_id: "", output: { city: "a", sizes: [1, null] } },
      { event: "tool-started", tool_call_id: "", tool_name: "breaks", input: '{"city":"b"}' },
      { event: "tool-error", tool_call_id: "", message: "no b" },
    ]);
  });

  test("a call that fails says why", async () => {
    const { url } = await start();
    const { thread } = streamOf(url, transport, "breaking");
    const calls = thread.toolCalls;
    await thread.run.start({ input });
    await thread.output;
    const [found] = await all(calls);
    expect(found).toMatchObject({ name: "breaks", id: "call_0" });
    await expect(found?.output).rejects.toThrow("no Lisbon");
  });
});

test.each([
  ["1.2.0", ["sub:1"]],
  ["1.5.3", ["sub:1"]],
  ["1.7.0", ["sub:1", "tools:2"]],
  ["2.0.0", ["sub:1", "tools:2"]],
])("the namespace of a tool's graph, of LangGraph.js %s", (version, expected) => {
  expect(toolNamespace(["sub:1", "tools:2"], version)).toEqual(expected);
});
