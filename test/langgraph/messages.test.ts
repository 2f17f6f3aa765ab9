import {
  AIMessage,
  type BaseMessage,
  HumanMessage,
  SystemMessage,
  ToolMessage,
} from "@langchain/core/messages";
import { MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { Client } from "@langchain/langgraph-sdk";
import { expect, test } from "vitest";
import { serve } from "../e2e/support/server.ts";
import { served } from "./support.ts";

const call = { name: "search", args: { q: "tea" }, id: "c", type: "tool_call" as const };
const usage = { input_tokens: 1, output_tokens: 2, total_tokens: 3 };

/** The messages, as a node makes them with the classes of LangChain. `rating` is a member that LangChain does not know. */
const made = (): BaseMessage[] => [
  new HumanMessage({ id: "1", content: "hi" }),
  new HumanMessage({ id: "2", content: "hi", name: "Ann", example: true, rating: { stars: 5 } } as object),
  new AIMessage({ id: "3", content: "", tool_calls: [call] }),
  new AIMessage({ id: "4", content: "yes", name: "bot", usage_metadata: usage, rating: 1 } as object),
  new SystemMessage({ id: "5", content: "be kind" }),
  new ToolMessage({ id: "6", content: "r", tool_call_id: "c" }),
  new ToolMessage({ id: "7", content: "r", tool_call_id: "c", name: "t", status: "error", artifact: [1] }),
];

/** The same messages, as a client sends them. */
const sent = [
  { role: "user", id: "1", content: "hi" },
  { type: "human", id: "2", content: "hi", name: "Ann", example: true, rating: { stars: 5 } },
  { role: "assistant", id: "3", content: "", tool_calls: [call] },
  { type: "ai", id: "4", content: "yes", name: "bot", usage_metadata: usage, rating: 1 },
  { role: "system", id: "5", content: "be kind" },
  { role: "tool", id: "6", content: "r", tool_call_id: "c" },
  { type: "tool", id: "7", content: "r", tool_call_id: "c", name: "t", status: "error", artifact: [1] },
];

/** What is shown of both: what the official server shows, and `name`, `example` and `usage_metadata` also where nobody has given them. */
const own = { name: null, example: false, additional_kwargs: {}, response_metadata: {} };
const ai = { ...own, type: "ai", tool_calls: [], invalid_tool_calls: [], usage_metadata: null };
const shown = [
  { ...own, type: "human", id: "1", content: "hi" },
  { ...own, type: "human", id: "2", content: "hi", name: "Ann", example: true, rating: { stars: 5 } },
  { ...ai, id: "3", content: "", tool_calls: [call] },
  { ...ai, id: "4", content: "yes", name: "bot", usage_metadata: usage, rating: 1 },
  { ...own, type: "system", id: "5", content: "be kind" },
  { ...own, type: "tool", id: "6", content: "r", tool_call_id: "c" },
  {
    ...own,
    type: "tool",
    id: "7",
    content: "r",
    tool_call_id: "c",
    name: "t",
    status: "error",
    artifact: [1],
  },
];

test.each([
  ["made by a node with their classes", made, []],
  ["sent by a client as JSON", () => [], sent],
])("messages %s are shown the same, before and after they are stored", async (_, make, messages) => {
  const seen: object[] = [];
  const graph = new StateGraph(MessagesAnnotation)
    .addNode("say", () => ({ messages: make() }))
    .addNode("look", (state) => {
      for (const message of state.messages) seen.push(message.toDict().data);
      return {};
    })
    .addEdge(START, "say")
    .addEdge("say", "look")
    .compile();
  const app = await serve({ langGraphs: await served({ graph }) });
  const client = new Client({ apiUrl: app.url });
  const { thread_id } = await client.threads.create();
  const events: unknown[] = [];
  const stream = client.runs.stream(thread_id, "graph", {
    input: { messages },
    streamMode: "values",
    interruptBefore: ["look"],
  });
  for await (const { event, data } of stream) if (event === "values") events.push(data);
  expect(events.at(-1)).toEqual({ messages: shown, __interrupt__: [] });
  expect((await client.threads.getState(thread_id)).values).toEqual({ messages: shown });
  // Goes on from what is stored.
  expect(await client.runs.wait(thread_id, "graph", { input: null })).toEqual({ messages: shown });
  expect((await client.threads.getState(thread_id)).values).toEqual({ messages: shown });
  // Nodes get the messages with all members, too.
  expect(seen[1]).toMatchObject({ example: true, rating: { stars: 5 } });
  expect(seen[3]).toMatchObject({ rating: 1 });
});

test("a message made of content blocks has them as its content", async () => {
  const contentBlocks = [{ type: "text" as const, text: "yes" }];
  const graph = new StateGraph(MessagesAnnotation)
    .addNode("say", () => ({ messages: [new HumanMessage({ id: "1", contentBlocks })] }))
    .addEdge(START, "say")
    .compile();
  const app = await serve({ langGraphs: await served({ graph }) });
  const client = new Client({ apiUrl: app.url });
  const said = { ...own, type: "human", id: "1", content: contentBlocks };
  expect(await client.runs.wait(null, "graph", { input: { messages: [] } })).toEqual({
    messages: [{ ...said, response_metadata: { output_version: "v1" } }],
  });
});
