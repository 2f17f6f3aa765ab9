import { AIMessage, type BaseMessage, ToolMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { Command, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { createReactAgent, ToolNode } from "@langchain/langgraph/prebuilt";
import { expect, test } from "vitest";
import { z } from "zod";
import { serve } from "../e2e/support/server.ts";
import { newThread, post, postJson, Reading } from "../e2e/support/wire.ts";
import { ScriptedModel } from "../conformance/scripted-model.ts";
import { served } from "./support.ts";

const schema = z.object({ q: z.string() });
const options = (name: string) => ({ name, description: name, schema });

const plain = tool(({ q }) => `found ${q}`, options("plain"));
const failing = tool((): string => {
  throw new Error("no way");
}, options("failing"));
/** Updates the state itself, including the message with its answer. */
const commanding = tool(
  ({ q }, config) =>
    new Command({
      update: {
        messages: [
          new ToolMessage({
            content: `did ${q}`,
            tool_call_id: (config as unknown as { toolCall: { id: string } }).toolCall.id,
          }),
        ],
      },
    }),
  options("commanding"),
);
const tools = [plain, failing, commanding];

const calls = ["plain", "plain", "failing", "commanding"].map((name, i) => ({
  name,
  args: { q: String(i) },
  id: `c${i}`,
  type: "tool_call" as const,
}));

/** Calls all tools in parallel, and ends. */
const calling = () =>
  new StateGraph(MessagesAnnotation)
    .addNode("model", () => ({ messages: [new AIMessage({ id: "a1", content: "", tool_calls: calls })] }))
    .addNode("tools", new ToolNode(tools))
    .addEdge(START, "model")
    .addEdge("model", "tools")
    .compile();

/** Calls tools, and answers the first call in the given way. */
const returning = (answer: (message: BaseMessage) => unknown) =>
  new StateGraph(MessagesAnnotation)
    .addNode("model", () => ({ messages: [new AIMessage({ id: "a1", content: "", tool_calls: calls })] }))
    .addNode("tools", () => answer(new ToolMessage({ content: "by hand", tool_call_id: "c0" })) as never)
    .addEdge(START, "model")
    .addEdge("model", "tools")
    .compile();

const graphs = {
  calling: calling(),
  within: new StateGraph(MessagesAnnotation).addNode("sub", calling()).addEdge(START, "sub").compile(),
  commands: returning((message) => [new Command({ update: { messages: [message] } })]),
  command: returning((message) => new Command({ update: { messages: message } })),
  single: returning((message) => ({ messages: message })),
  turns: createReactAgent({
    llm: new ScriptedModel([
      { text: "one ", call: { name: "plain", args: { q: "a" } } },
      { text: "two ", call: { name: "plain", args: { q: "b" } } },
      { text: "done" },
    ]),
    tools: [plain],
  }),
};

interface Told {
  readonly method: string;
  readonly params: {
    readonly namespace: readonly string[];
    readonly data: { readonly event?: string; readonly tool_call_id?: string };
  };
}

/** The events of tool calls that the protocol streams, by call. */
async function toolEvents(name: keyof typeof graphs): Promise<Record<string, string>> {
  const { url } = await serve({ langGraphs: await served(graphs) });
  const thread = await newThread(url);
  const filter = { channels: ["tools", "lifecycle"] };
  const reading = new Reading(await post(`${url}/threads/${thread}/stream/events`, filter));
  const input = { messages: [{ role: "user", content: "hello" }] };
  const params = { assistant_id: name, input };
  await postJson(`${url}/threads/${thread}/commands`, { id: 1, method: "run.start", params });
  const sent = await reading.until(({ data }) => {
    const { method, params: told } = data as Told;
    return (
      method === "lifecycle" &&
      told.namespace.length === 0 &&
      ["completed", "failed"].includes(told.data.event ?? "")
    );
  });
  await reading.leave();
  const found: Record<string, string> = {};
  for (const { data } of sent) {
    const { method, params: told } = data as Told;
    const { event = "", tool_call_id: id = "" } = told.data;
    if (method === "tools") found[id] = found[id] === undefined ? event : `${found[id]} ${event}`;
  }
  return found;
}

const [done, failed] = ["tool-started tool-finished", "tool-started tool-error"];

test.each(["calling", "within"] as const)(
  "each tool call is told to have begun and ended, once: %s",
  async (name) => {
    expect(await toolEvents(name)).toEqual({ c0: done, c1: done, c2: failed, c3: done });
  },
);

test.each(["commands", "command", "single"] as const)(
  "whatever the node returns that answers a call: %s",
  async (name) => {
    const begun = Object.fromEntries(calls.map(({ id }) => [id, "tool-started"]));
    expect(await toolEvents(name)).toEqual({ ...begun, c0: done });
  },
);

test("the calls of an agent's turns", async () => {
  expect(await toolEvents("turns")).toEqual({ call_0: done, call_1: done });
});
