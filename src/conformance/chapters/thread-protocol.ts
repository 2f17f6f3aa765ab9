import { defineChapter, type TestedServer } from "../conformance-check.ts";
import type { SentEvent } from "../http-client.ts";
import { aText, aUuid, expectMatch } from "../response-pattern.ts";

/** An event of the thread-centric protocol, version 2. */
interface ProtocolEvent {
  readonly seq: number;
  readonly method: string;
  readonly params: { readonly namespace: readonly string[]; readonly data: { readonly event?: string } };
}

const ENDS: ReadonlySet<unknown> = new Set(["completed", "interrupted", "failed"]);

const isEnd = ({ data }: SentEvent): boolean => {
  const { method, params } = data as ProtocolEvent;
  return method === "lifecycle" && params.namespace.length === 0 && ENDS.has(params.data.event);
};

/** Sends a protocol command to a thread, and returns the body of the response. */
async function command(
  { http }: TestedServer,
  thread: string,
  method: string,
  params: object,
): Promise<unknown> {
  return (await http.send("POST", `/threads/${thread}/commands`, { id: 1, method, params })).body;
}

/** Returns the events of a thread up to the end of a run. `since`: only events after the one with this number. */
async function follow(
  { http }: TestedServer,
  thread: string,
  channels: readonly string[],
  since?: number,
): Promise<ProtocolEvent[]> {
  const filter = { channels: [...channels, "lifecycle"], ...(since !== undefined && { since }) };
  const sent = await http.streamUntil("POST", `/threads/${thread}/stream/events`, filter, isEnd);
  return sent.map(({ data }) => data as ProtocolEvent);
}

/** Starts a run on a new thread. Returns the thread's id, and the events up to the end of the run. */
async function start(
  server: TestedServer,
  assistant_id: string,
  channels: readonly string[],
  input: object = { topic: "tea" },
): Promise<readonly [thread: string, events: ProtocolEvent[]]> {
  const { thread_id } = await server.client.threads.create();
  await command(server, thread_id, "run.start", { assistant_id, input });
  return [thread_id, await follow(server, thread_id, channels)];
}

const shownOf = (events: readonly ProtocolEvent[]): unknown[] =>
  events.map(({ method, params: { data } }) => (method === "lifecycle" ? data.event : [method, data]));

export const threadProtocolChecks = defineChapter("thread protocol", {
  "a command starts a run, and is answered with its id": async (server) => {
    const { thread_id } = await server.client.threads.create();
    const answer = await command(server, thread_id, "run.start", { assistant_id: "steps", input: {} });
    expectMatch("the answer", answer, { type: "success", id: 1, result: { run_id: aUuid } });
  },
  "events have a number, a method and a namespace": async (server) => {
    const [, events] = await start(server, "steps", []);
    for (const event of events)
      expectMatch("an event", event, {
        type: "event",
        event_id: aText,
        method: "lifecycle",
        params: { namespace: [] },
      });
    const numbers = events.map(({ seq }) => seq);
    expectMatch(
      "the numbers",
      numbers,
      numbers.toSorted((a, b) => a - b),
    );
  },
  "a run is told of from its start to its end, on the channels that are asked for": async (server) => {
    const [, events] = await start(server, "steps", ["updates"]);
    expectMatch("the events", shownOf(events), [
      "running",
      ["updates", { log: ["first about tea"] }],
      ["updates", { log: ["second after 1"] }],
      "completed",
    ]);
  },
  "values: the whole state after each step": async (server) => {
    const [, events] = await start(server, "steps", ["values"]);
    expectMatch("the events", shownOf(events), [
      "running",
      ["values", { topic: "tea", log: [] }],
      ["values", { log: ["first about tea"] }],
      ["values", { log: ["first about tea", "second after 1"] }],
      "completed",
    ]);
  },
  "messages: a message comes in pieces": async (server) => {
    const input = { messages: [{ role: "user", content: "hi", id: "u1" }] };
    const [, events] = await start(server, "chat", ["messages"], input);
    const told = events.flatMap(({ method, params }) => (method === "messages" ? [params.data] : []));
    expectMatch("the pieces", told, [
      { event: "message-start", id: aText },
      { event: "content-block-start", index: 0, content: { type: "text" } },
      ...["Hello ", "from ", "the ", "model"].map((text) => ({
        event: "content-block-delta",
        delta: { type: "text-delta", text },
      })),
      { event: "content-block-finish", content: { type: "text", text: "Hello from the model" } },
      { event: "message-finish" },
    ]);
  },
  "a question is asked, and its answer leads to the end": async (server) => {
    const [thread, events] = await start(server, "approval", ["input"]);
    const [asked] = events.flatMap(({ method, params }) => (method === "input.requested" ? [params] : []));
    expectMatch("the question", asked, {
      data: { interrupt_id: aText, payload: { draft: "Draft: tea" } },
    });
    expectMatch("the end", events.at(-1)?.params.data, { event: "interrupted" });
    const { interrupt_id } = (asked?.data ?? {}) as { readonly interrupt_id?: string };
    const { namespace } = asked ?? {};
    const answer = { namespace, interrupt_id, response: { ok: true } };
    expectMatch("the answer", await command(server, thread, "input.respond", answer), { type: "success" });
    const rest = await follow(server, thread, ["updates"], events.at(-1)?.seq);
    expectMatch("the events", shownOf(rest), [
      "running",
      ["updates", { log: ["approved"] }],
      ["updates", { log: ["sent"] }],
      "completed",
    ]);
  },
  "events of a subgraph name its task": async (server) => {
    const [, events] = await start(server, "nested", ["custom"]);
    const custom = events.filter(({ method }) => method === "custom");
    expectMatch("the event", custom, [{ params: { namespace: [aText], data: { payload: "from within" } } }]);
  },
  "since: what was seen before does not come again": async (server) => {
    const [thread, events] = await start(server, "steps", ["updates"]);
    const seen = events.find(({ method }) => method === "updates")?.seq;
    const rest = await follow(server, thread, ["updates"], seen);
    expectMatch("the events", shownOf(rest), [["updates", { log: ["second after 1"] }], "completed"]);
  },
  "an unknown command is refused": async (server) => {
    const [thread] = await start(server, "steps", []);
    const answer = await command(server, thread, "no.such", {});
    expectMatch("the answer", answer, { type: "error", id: 1, error: "unknown_command", message: aText });
  },
});
