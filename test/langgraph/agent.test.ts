import { fileURLToPath } from "node:url";
import { Client } from "@langchain/langgraph-sdk";
import { expect, test } from "vitest";
import { serve } from "../e2e/support/server.ts";

const config = fileURLToPath(new URL("../fixtures/langgraph/langgraph.json", import.meta.url));

interface Message {
  readonly id: string;
  readonly type: string;
  readonly content: string;
  readonly tool_call_chunks?: readonly { readonly name: string }[];
}

/** A thread of an agent, and what a run on it streams. */
async function talk(agent: string) {
  const app = await serve({ config });
  const client = new Client({ apiUrl: app.url });
  const { thread_id } = await client.threads.create();
  const said = async (payload: object) => {
    const tokens: string[] = [];
    const calls: string[] = [];
    let last: unknown;
    for await (const { event, data } of client.runs.stream(thread_id, agent, {
      ...payload,
      streamMode: ["messages-tuple", "values"],
    })) {
      if (event === "values") last = data;
      if (event !== "messages") continue;
      const [{ content, type, tool_call_chunks = [] }] = data as unknown as [Message];
      if (content !== "") tokens.push(`${type}: ${content}`);
      calls.push(...tool_call_chunks.map(({ name }) => name));
    }
    return { tokens, calls, last };
  };
  return { app, client, thread_id, said };
}

/**
 * How the tool of `createReactAgent` and the middleware of `createAgent` ask, and which answer each takes as approval.
 */
const agents = [
  ["booking", { action: "book a flight", city: "Lisbon" }, true],
  [
    "reviewed",
    {
      actionRequests: [{ name: "book", args: { city: "Lisbon" } }],
      reviewConfigs: [{ actionName: "book", allowedDecisions: ["approve", "edit", "reject"] }],
    },
    { decisions: [{ type: "approve" }] },
  ],
] as const;

test.each(agents)(
  "the agent %s streams tokens, calls tools, waits for a human's approval, and goes on",
  async (name, question, yes) => {
    const { app, client, thread_id, said } = await talk(name);
    const first = await said({ input: { messages: [{ role: "user", content: "Fly me to Lisbon" }] } });
    expect(first.tokens).toEqual([
      "ai: Let ",
      "ai: me ",
      "ai: look ",
      "tool: It is sunny in Lisbon",
      "ai: Now ",
      "ai: the ",
      "ai: flight ",
    ]);
    expect(first.calls).toEqual(["weather", "book"]);
    expect(first.last).toMatchObject({
      __interrupt__: [{ value: question, resumable: true, when: "during" }],
    });
    expect((await client.threads.get(thread_id)).status).toBe("interrupted");

    const second = await said({ command: { resume: yes } });
    expect(second.tokens).toEqual([
      "tool: Booked a flight to Lisbon",
      "ai: All ",
      "ai: is ",
      "ai: done ",
      "ai: for ",
      "ai: you",
    ]);
    const { values } = await client.threads.getState<{ messages: Message[] }>(thread_id);
    expect(values.messages.map(({ type, content }) => [type, content])).toEqual([
      ["human", "Fly me to Lisbon"],
      ["ai", "Let me look "],
      ["tool", "It is sunny in Lisbon"],
      ["ai", "Now the flight "],
      ["tool", "Booked a flight to Lisbon"],
      ["ai", "All is done for you"],
    ]);
    expect(app.complaints).toEqual([]);
  },
);

test("what it has said so far: the mode `messages`", async () => {
  const app = await serve({ config });
  const client = new Client({ apiUrl: app.url });
  const { thread_id } = await client.threads.create();
  const events: [string, unknown][] = [];
  for await (const { event, data } of client.runs.stream(thread_id, "booking", {
    input: { messages: [{ role: "user", content: "hi" }] },
    streamMode: "messages",
  })) {
    events.push([event, data]);
  }
  const contents = (kind: string) =>
    events
      .filter(([event]) => event === kind)
      .map(([, data]) => (data as Message[]).map(({ content }) => content).join());
  expect(contents("messages/partial").slice(0, 4)).toEqual([
    "Let ",
    "Let me ",
    "Let me look ",
    "Let me look ",
  ]);
  expect(contents("messages/complete").slice(0, 3)).toEqual(["hi", "Let me look ", "It is sunny in Lisbon"]);
});

test("what the agent itself is configured with is not among the metadata of its checkpoints", async () => {
  const { client, thread_id, said } = await talk("reviewed");
  await said({ input: { messages: [{ role: "user", content: "Fly me to Lisbon" }] } });
  const command = { resume: { decisions: [{ type: "approve" }] } };
  const kinds: string[] = [];
  for await (const { event, data } of client.runs.stream(thread_id, "reviewed", {
    command,
    config: { configurable: { own: "asked" } },
    streamMode: "debug",
  })) {
    const { type, payload } = data as { type?: string; payload?: { metadata: object } };
    if (event !== "debug" || type !== "checkpoint") continue;
    kinds.push(type);
    expect(payload?.metadata).not.toHaveProperty("ls_agent_type");
  }
  expect(kinds.length).toBeGreaterThan(1);
  const { metadata } = await client.threads.getState(thread_id);
  expect(metadata).toMatchObject({ own: "asked" });
  expect(metadata).not.toHaveProperty("ls_agent_type");
});

test("the state that the mode debug shows of a checkpoint is the one that is read of it", async () => {
  const { client, thread_id, said } = await talk("reviewed");
  await said({ input: { messages: [{ role: "user", content: "Fly me to Lisbon" }] } });
  const shown = new Map<string, unknown>();
  for await (const { event, data } of client.runs.stream(thread_id, "reviewed", {
    command: { resume: { decisions: [{ type: "approve" }] } },
    streamMode: "debug",
  })) {
    const { type, payload } = data as {
      type?: string;
      payload?: { checkpoint: { checkpoint_id: string }; values: unknown };
    };
    if (event === "debug" && type === "checkpoint" && payload !== undefined)
      shown.set(payload.checkpoint.checkpoint_id, payload.values);
  }
  const history = await client.threads.getHistory(thread_id, { limit: 100 });
  const read = history.map(({ checkpoint, values }) => [checkpoint.checkpoint_id, values] as const);
  expect(shown.size).toBeGreaterThan(1);
  expect(shown).toEqual(new Map(read.filter(([id]) => shown.has(id ?? ""))));
});
