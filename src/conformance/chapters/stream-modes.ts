import { defineChapter, type TestedServer } from "../conformance-check.ts";
import type { SentEvent } from "../http-client.ts";
import { aList, anObject, aText, aTimestamp, aUuid, expectMatch, oneOf } from "../response-pattern.ts";

const human = { messages: [{ role: "user", content: "hi", id: "u1" }] };

/** Starts a run on a new thread over plain HTTP, and returns all events of its stream. */
async function eventsOf(
  { client, http }: TestedServer,
  assistant_id: string,
  stream_mode: string | readonly string[],
  more: object = {},
): Promise<SentEvent[]> {
  const { thread_id } = await client.threads.create();
  const body = { assistant_id, input: {}, stream_mode, ...more };
  return http.stream("POST", `/threads/${thread_id}/runs/stream`, body);
}

const named = (events: readonly SentEvent[], name: string): unknown[] =>
  events.flatMap(({ event, data }) => (event === name ? [data] : []));

const namesOf = (events: readonly SentEvent[]): string[] => events.map(({ event }) => event);

/** The data of the events `tools` of the graph `tools`, whose names all end with the task of its subgraph. */
async function toolEventsOf(server: TestedServer): Promise<readonly unknown[]> {
  const events = await eventsOf(server, "tools", ["tools"], { input: human, stream_subgraphs: true });
  const names = namesOf(events).map((name) => name.replace(/[0-9a-f-]{36}/, "<id>"));
  expectMatch("the names", names, ["metadata", ...Array.from({ length: 6 }, () => "tools|sub:<id>")]);
  return events.slice(1).map(({ data }) => data);
}

const input = { topic: "tea" };
const first = { log: ["first about tea"] };
const second = { log: ["second after 1"] };

export const streamModeChecks = defineChapter("stream modes", {
  "the first event is metadata, with the run and its attempt": async (server) => {
    const events = await eventsOf(server, "steps", ["values"], { input });
    expectMatch("the first event", events[0], { event: "metadata", data: { run_id: aUuid, attempt: 1 } });
  },
  "values: the whole state after each step": async (server) => {
    const events = await eventsOf(server, "steps", ["values"], { input });
    expectMatch("the events", events.slice(1), [
      { event: "values", data: { topic: "tea", log: [] } },
      { event: "values", data: { topic: "tea", log: ["first about tea"] } },
      { event: "values", data: { topic: "tea", log: ["first about tea", "second after 1"] } },
    ]);
  },
  "updates: what each node wrote": async (server) => {
    const events = await eventsOf(server, "steps", ["updates"], { input });
    expectMatch("the events", events.slice(1), [
      { event: "updates", data: { first } },
      { event: "updates", data: { second } },
    ]);
  },
  "updates: nodes side by side are separate events": async (server) => {
    const events = await eventsOf(server, "branches", ["updates"]);
    const nodes = named(events, "updates").map((data) => Object.keys(data as object).join());
    expectMatch("the nodes", nodes.toSorted(), [
      "begin",
      "gather",
      "last",
      "left",
      "silent",
      "spread",
      "worker",
      "worker",
    ]);
  },
  "one mode may be a text instead of a list": async (server) => {
    const events = await eventsOf(server, "steps", "updates", { input });
    expectMatch("the names", namesOf(events), ["metadata", "updates", "updates"]);
  },
  "several modes come in the order of what happens": async (server) => {
    const events = await eventsOf(server, "steps", ["values", "updates"], { input });
    expectMatch("the names", namesOf(events), [
      "metadata",
      "values",
      "updates",
      "values",
      "updates",
      "values",
    ]);
  },
  "messages-tuple: tokens with the node that they come from": async (server) => {
    const events = await eventsOf(server, "chat", ["messages-tuple"], { input: human });
    const parts = named(events, "messages") as [{ content: string; id: string }, object][];
    expectMatch(
      "the tokens",
      parts.map(([chunk]) => chunk.content),
      ["Hello ", "from ", "the ", "model"],
    );
    expectMatch("the number of their ids", new Set(parts.map(([chunk]) => chunk.id)).size, 1);
    for (const part of parts)
      expectMatch("a part", part, [
        { type: oneOf("ai", "AIMessageChunk"), id: aText },
        { langgraph_node: "answer", langgraph_step: 1, graph_id: "chat", run_id: aUuid },
      ]);
  },
  "messages-tuple: the message in the state has the id of its tokens": async (server) => {
    const events = await eventsOf(server, "chat", ["messages-tuple", "values"], { input: human });
    const [[chunk]] = named(events, "messages") as [[{ id: string }]];
    const last = named(events, "values").at(-1) as { messages: unknown[] };
    expectMatch("the message", last.messages.at(-1), { id: chunk.id, content: "Hello from the model" });
  },
  "messages-tuple: a tool's message comes whole": async (server) => {
    const events = await eventsOf(server, "agent", ["messages-tuple"], { input: human });
    const parts = named(events, "messages") as [{ type: string }, object][];
    expectMatch(
      "the messages of tools",
      parts.filter(([{ type }]) => type === "tool"),
      [
        [
          { type: "tool", content: "It is sunny in Lisbon", tool_call_id: "call_0", name: "weather" },
          { langgraph_node: "tools" },
        ],
      ],
    );
  },
  "messages: the metadata once, then the message as far as it came": async (server) => {
    const events = await eventsOf(server, "chat", ["messages"], { input: human });
    const partial = named(events, "messages/partial") as [{ content: string }][];
    expectMatch(
      "the partial messages",
      partial.map(([{ content }]) => content),
      ["Hello ", "Hello from ", "Hello from the ", "Hello from the model"],
    );
    expectMatch("the number of metadata", named(events, "messages/metadata").length, 1);
    const complete = named(events, "messages/complete").flat() as { content: string }[];
    expectMatch(
      "the complete messages",
      complete.map(({ content }) => content),
      ["hi", "Hello from the model"],
    );
  },
  "messages: a later run tells of its own messages alone": async (server) => {
    const { client, http } = server;
    const { thread_id } = await client.threads.create();
    await client.runs.wait(thread_id, "chat", { input: human });
    const events = await http.stream("POST", `/threads/${thread_id}/runs/stream`, {
      assistant_id: "chat",
      input: { messages: [{ role: "user", content: "again", id: "u2" }] },
      stream_mode: ["messages"],
    });
    const complete = named(events, "messages/complete").flat() as { content: string }[];
    expectMatch(
      "the complete messages",
      complete.map(({ content }) => content),
      ["again", "Hello from the model"],
    );
  },
  "custom: what nodes emit, as it is": async (server) => {
    const events = await eventsOf(server, "branches", ["custom"]);
    expectMatch("the events", events.slice(1), [
      { event: "custom", data: { progress: 0.5, text: 'é\n"quoted"\u2028' } },
      { event: "custom", data: [1, null] },
      { event: "custom", data: "text" },
    ]);
  },
  "custom: what nodes of a subgraph emit comes without stream_subgraphs, too": async (server) => {
    const events = await eventsOf(server, "nested", ["custom"]);
    expectMatch("the events", events.slice(1), [{ event: "custom", data: "from within" }]);
  },
  "tasks: the start and the result of each task": async (server) => {
    const events = await eventsOf(server, "steps", ["tasks"], { input });
    expectMatch("the events", named(events, "tasks"), [
      { id: aUuid, name: "first", input: { topic: "tea", log: [] }, triggers: aList, interrupts: [] },
      { id: aUuid, name: "first", result: first, interrupts: [], error: null },
      { id: aUuid, name: "second", triggers: aList, interrupts: [] },
      { id: aUuid, name: "second", result: second, interrupts: [], error: null },
    ]);
  },
  "checkpoints: each state that is stored": async (server) => {
    const events = await eventsOf(server, "steps", ["checkpoints"], { input });
    expectMatch("the events", named(events, "checkpoints"), [
      { metadata: { source: "input", step: -1 }, next: ["__start__"] },
      { metadata: { source: "loop", step: 0 }, next: ["first"], values: { topic: "tea", log: [] } },
      { metadata: { source: "loop", step: 1 }, next: ["second"] },
      {
        metadata: { source: "loop", step: 2 },
        next: [],
        values: { log: ["first about tea", "second after 1"] },
      },
    ]);
  },
  "checkpoints: each says where it is and what comes next": async (server) => {
    const events = await eventsOf(server, "steps", ["checkpoints"], { input });
    expectMatch("the second event", named(events, "checkpoints")[1], {
      checkpoint: { thread_id: aUuid, checkpoint_id: aUuid, checkpoint_ns: "" },
      parent_checkpoint: { checkpoint_id: aUuid },
      tasks: [{ id: aUuid, name: "first" }],
      config: anObject,
    });
  },
  "debug: checkpoints and tasks in an envelope": async (server) => {
    const events = await eventsOf(server, "steps", ["debug"], { input });
    const told = named(events, "debug") as { type: string; step: number }[];
    expectMatch(
      "the types",
      told.map(({ type, step }) => `${type} ${step}`),
      [
        "checkpoint -1",
        "checkpoint 0",
        "task 1",
        "task_result 1",
        "checkpoint 1",
        "task 2",
        "task_result 2",
        "checkpoint 2",
      ],
    );
    expectMatch("a checkpoint", told[1], {
      timestamp: aTimestamp,
      payload: {
        values: { topic: "tea", log: [] },
        next: ["first"],
        checkpoint: { thread_id: aUuid, checkpoint_id: aUuid, checkpoint_ns: "" },
        metadata: { step: 0, source: "loop" },
      },
    });
    expectMatch("a task", told[2], { payload: { id: aUuid, name: "first", triggers: aList } });
    expectMatch("a result", told[3], { payload: { id: aUuid, name: "first", result: first } });
  },
  "debug: a run that goes on after a question begins with what was asked": async (server) => {
    const { client, http } = server;
    const { thread_id } = await client.threads.create();
    const begun = await client.runs.wait(thread_id, "questions", { input: {} });
    const state = await client.threads.getState(thread_id);
    const asked = state.tasks.map(({ name, interrupts: [question] }) => [name, question?.id]);
    const resume = { [String(Object.fromEntries(asked)["left"])]: "L" };
    expectMatch("the first run", begun, { __interrupt__: aList });
    const path = `/threads/${thread_id}/runs/stream`;
    const body = { assistant_id: "questions", stream_mode: ["debug"] };
    await http.stream("POST", path, { ...body, command: { resume } });
    const right = { [String(Object.fromEntries(asked)["right"])]: "R" };
    const events = await http.stream("POST", path, { ...body, command: { resume: right } });
    expectMatch("the first checkpoint", named(events, "debug")[0], {
      type: "checkpoint",
      payload: {
        tasks: [
          { name: "left", interrupts: [{ value: "left?" }], result: { log: ["left L"] } },
          { name: "right", interrupts: [{ value: "right?" }] },
        ],
      },
    });
  },
  "debug: a task that is a subgraph says where that is": async (server) => {
    const events = await eventsOf(server, "nested", ["debug"]);
    const told = named(events, "debug") as { type: string; payload: { next?: readonly string[] } }[];
    const planned = told.find(({ payload: { next } }) => next?.includes("sub"));
    expectMatch("the checkpoint", planned, {
      payload: { tasks: [{ name: "sub", checkpoint: { thread_id: aUuid, checkpoint_ns: aText } }] },
    });
  },
  "events: the start and the end of the graph, its nodes and its model": async (server) => {
    const events = await eventsOf(server, "chat", ["events"], { input: human });
    const told = named(events, "events") as { event: string; name: string }[];
    const kinds = told
      .filter(({ event }) => event !== "on_chain_stream")
      .map(({ event, name }) => (event.startsWith("on_chat_model") ? event : `${event} ${name}`));
    expectMatch("the events", kinds, [
      "on_chain_start LangGraph",
      "on_chain_start answer",
      "on_chat_model_start",
      "on_chat_model_stream",
      "on_chat_model_stream",
      "on_chat_model_stream",
      "on_chat_model_stream",
      "on_chat_model_end",
      "on_chain_end answer",
      "on_chain_end LangGraph",
    ]);
    expectMatch("the last event", told.at(-1), { data: { output: anObject }, run_id: aUuid });
  },
  "tools: a call of a tool starts with its input, and ends with its message": async (server) => {
    const events = await eventsOf(server, "agent", ["tools"], { input: human });
    const call = { toolCallId: "call_0", name: "weather" };
    const output = {
      type: "tool",
      content: "It is sunny in Lisbon",
      tool_call_id: "call_0",
      name: "weather",
    };
    expectMatch("the events", events.slice(1), [
      { event: "tools", data: { event: "on_tool_start", ...call, input: '{"city":"Lisbon"}' } },
      { event: "tools", data: { event: "on_tool_end", ...call, output } },
    ]);
  },
  "tools: what a tool reports comes between its start and its end, under the task of its graph": async (
    server,
  ) => {
    const told = await toolEventsOf(server);
    const call = { toolCallId: "call_0", name: "search" };
    expectMatch("the events of the first call", told.slice(0, 4), [
      { event: "on_tool_start", ...call, input: '{"query":"tea"}' },
      { event: "on_tool_event", ...call, data: { found: 1 } },
      { event: "on_tool_event", ...call, data: "half" },
      { event: "on_tool_end", ...call, output: { content: "Found tea" } },
    ]);
  },
  "tools: a call that fails ends with an event of its own": async (server) => {
    const told = await toolEventsOf(server);
    const call = { toolCallId: "call_1", name: "broken" };
    expectMatch("the events of the second call", told.slice(4), [
      { event: "on_tool_start", ...call, input: '{"query":"tea"}' },
      { event: "on_tool_error", ...call, error: anObject },
    ]);
  },
  "tools: a call that fails says why": async (server) => {
    const told = await toolEventsOf(server);
    expectMatch("the last event", told.at(-1), { error: { name: "TypeError", message: "no tea" } });
  },
  "tools: without stream_subgraphs, calls in a subgraph are not shown": async (server) => {
    const events = await eventsOf(server, "tools", ["tools"], { input: human });
    expectMatch("the names", namesOf(events), ["metadata"]);
  },
  "with stream_subgraphs, events of a subgraph name its task": async (server) => {
    const events = await eventsOf(server, "nested", ["updates", "custom"], { stream_subgraphs: true });
    const names = namesOf(events).map((name) => name.replace(/[0-9a-f-]{36}/, "<id>"));
    expectMatch("the names", names, [
      "metadata",
      "updates",
      "custom|sub:<id>",
      "updates|sub:<id>",
      "updates|sub:<id>",
      "updates",
      "updates",
    ]);
  },
  "with stream_subgraphs, there are no events but those asked for": async (server) => {
    const events = await eventsOf(server, "steps", ["values"], { input, stream_subgraphs: true });
    expectMatch("the names", namesOf(events), ["metadata", "values", "values", "values"]);
  },
  "without stream_subgraphs, updates of a subgraph are not shown": async (server) => {
    const events = await eventsOf(server, "nested", ["updates"]);
    const nodes = named(events, "updates").map((data) => Object.keys(data as object).join());
    expectMatch("the nodes", nodes, ["before", "sub", "after"]);
  },
  "an error ends the stream with an event of its own": async (server) => {
    const events = await eventsOf(server, "failing", ["updates"]);
    expectMatch("the events", events.slice(1), [
      { event: "updates", data: { good: { log: ["good"] } } },
      { event: "error", data: { error: "TypeError", message: "kaboom" } },
    ]);
  },
  "a question is shown in updates and in values": async (server) => {
    const events = await eventsOf(server, "approval", ["updates", "values"], { input });
    const asked = { __interrupt__: [{ value: { draft: "Draft: tea" }, id: aText }] };
    expectMatch("the last two events", events.slice(-2), [
      { event: "updates", data: asked },
      { event: "values", data: asked },
    ]);
  },
  "events have ids": async (server) => {
    const events = await eventsOf(server, "steps", ["updates"], { input });
    for (const { id } of events) expectMatch("an id", id, aText);
    expectMatch("the number of ids", new Set(events.map(({ id }) => id)).size, events.length);
  },
  "the SDK reads the same events": async ({ client }) => {
    const { thread_id } = await client.threads.create();
    const found: unknown[] = [];
    const streamMode: ("values" | "updates")[] = ["values", "updates"];
    for await (const { event, data } of client.runs.stream(thread_id, "steps", { input, streamMode }))
      found.push([event, data]);
    expectMatch("the events", found, [
      ["metadata", { run_id: aUuid, attempt: 1 }],
      ["values", { topic: "tea", log: [] }],
      ["updates", { first }],
      ["values", { topic: "tea", log: ["first about tea"] }],
      ["updates", { second }],
      ["values", { topic: "tea", log: ["first about tea", "second after 1"] }],
    ]);
  },
});
