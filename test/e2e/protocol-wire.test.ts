import { describe, expect, test, vi } from "vitest";
import { WebSocket } from "ws";
import { createMachine, sendTo } from "xstate";
import { graph, list, messages } from "../../src/index.ts";
import { latch, unlessAborted } from "./support/latches.ts";
import { all, streamOf, transports } from "./support/protocol.ts";
import { proxyTo } from "./support/proxy.ts";
import { directory, serve } from "./support/server.ts";
import { get, NOBODY, post, postJson, Reading, type Sent } from "./support/wire.ts";

interface Told {
  readonly seq: number;
  readonly event_id: string;
  readonly method: string;
  readonly params: { readonly namespace: readonly string[]; readonly data: { readonly event?: string } };
}

const inner = graph({
  state: { messages: messages(), log: list<string>() },
  nodes: {
    say: async (_, ctx) => {
      const message = ctx.message();
      for (const token of ["a", "b", "c"]) message.write(token);
      return { messages: [message.end()], log: ["said"] };
    },
  },
  edges: { start: "say" },
});
const nested = graph({
  state: { messages: messages(), log: list<string>() },
  nodes: {
    sub: inner,
    last: async () => ({ log: ["last"], messages: [{ role: "ai", content: "as it is" }] }),
  },
  edges: { start: "sub", sub: "last" },
});

/** Streams half a message, waits to be released, and streams the rest. */
function halting() {
  const reached = latch();
  const opened = latch();
  const halt = graph({
    state: { messages: messages(), log: list<string>() },
    nodes: {
      talk: async (_, ctx) => {
        const message = ctx.message();
        message.write("one ");
        reached.pass();
        await unlessAborted(opened.passed, ctx.signal);
        message.write("two");
        return { messages: [message.end()], log: ["talked"] };
      },
    },
    edges: { start: "talk" },
  });
  return { halt, reached: reached.passed, open: () => opened.pass() };
}

const ALL = [
  "values",
  "updates",
  "messages",
  "tools",
  "lifecycle",
  "input",
  "checkpoints",
  "tasks",
  "custom",
];
const isTerminal = ({ method, params: { namespace, data } }: Told) =>
  method === "lifecycle" &&
  namespace.length === 0 &&
  ["completed", "failed", "interrupted"].includes(data.event ?? "");

/** Its children end in three ways: one is done, one fails, and one is stopped. */
function withChildMachines() {
  const done = createMachine({
    initial: "on",
    states: { on: { on: { END: "off" } }, off: { type: "final" } },
  });
  const broken = createMachine({
    on: {
      FAIL: {
        guard: () => {
          throw new RangeError("no way");
        },
      },
    },
  });
  const actors = { done, broken, stopped: createMachine({ on: { NOTHING: {} } }) };
  const machine = createMachine({
    initial: "on",
    states: {
      on: {
        invoke: [
          { src: "done", id: "done" },
          { src: "broken", id: "broken", onError: {} },
          { src: "stopped", id: "stopped" },
        ],
        on: {
          END: { actions: sendTo("done", { type: "END" }) },
          FAIL: { actions: sendTo("broken", { type: "FAIL" }) },
          LEAVE: "off",
        },
      },
      off: { on: { NOTHING: "on" } },
    },
  } as never).provide({ actors } as never);
  return machine as never;
}

let commands = 0;
const command = (url: string, thread: string, method: string, params: object = {}) =>
  postJson<{
    type: string;
    error?: string;
    message?: string;
    result: { run_id: string };
    meta?: { applied_through_seq: number };
  }>(`${url}/threads/${thread}/commands`, { id: ++commands, method, params });
const open = async (url: string, thread: string, filter: object) =>
  new Reading(await post(`${url}/threads/${thread}/stream/events`, filter));

/** The events of a stream until the n-th end of a run; then closes it. */
async function told(reading: Reading, nth = 1): Promise<Told[]> {
  let ends = 0;
  let looked = 0;
  const found = await untilSent(reading, (sent) => {
    for (; looked < sent.length; looked++) if (isTerminal(sent[looked]?.data as Told)) ends++;
    return ends >= nth;
  });
  await reading.leave();
  return found.map(({ data }) => data as Told);
}

async function untilSent(reading: Reading, isIt: (sent: readonly Sent[]) => boolean): Promise<Sent[]> {
  const seen: Sent[] = [];
  return reading.until((sent) => {
    if (!seen.some(({ id }) => id === sent.id)) seen.push(sent);
    return isIt(seen);
  });
}

describe("a stream of the protocol", () => {
  test("tells how child machines pause with a run, and how they end", async () => {
    const { url } = await serve({ graphs: { machine: withChildMachines() } });
    const thread = crypto.randomUUID();
    const reading = await open(url, thread, { channels: ["lifecycle", "values"] });
    const run = async (input: object) => {
      const { result } = await command(url, thread, "run.start", { assistant_id: "machine", input });
      await get(`${url}/threads/${thread}/runs/${result.run_id}/join`);
    };
    await run({});
    for (const type of ["END", "FAIL", "LEAVE"]) {
      // oxlint-disable-next-line no-await-in-loop -- each answers the question of the run before
      await run({ type });
    }
    const namesOf = (events: readonly Told[]) =>
      events.flatMap(({ method, params: { namespace, data } }) =>
        method === "lifecycle" ? [[namespace[0]?.split(":", 1)[0] ?? "machine", data.event].join(" ")] : [],
      );
    const live = await told(reading, 4);
    const ends = (...children: readonly string[]) => ["machine running", ...children, "machine interrupted"];
    expect(namesOf(live)).toEqual([
      ...ends(
        "done started",
        "broken started",
        "stopped started",
        "stopped interrupted",
        "broken interrupted",
        "done interrupted",
      ),
      ...ends("done started", "done completed"),
      ...ends("broken started", "broken failed"),
      ...ends("stopped started", "stopped interrupted"),
    ]);
    const failed = live.find(({ params }) => params.data.event === "failed");
    expect(failed?.params.data).toMatchObject({
      graph_name: "broken",
      error: expect.stringContaining("no way"),
    });
    // The same from what is stored.
    expect(await told(await open(url, thread, { channels: ["lifecycle", "values"] }), 4)).toEqual(live);
  });

  test("is framed as server-sent events with ids that are unique and numbers that grow", async () => {
    const { url } = await serve({ graphs: { nested } });
    const filter = { channels: ALL };
    const reading = await open(url, NOBODY, filter);
    const { result } = await command(url, NOBODY, "run.start", { assistant_id: "nested", input: {} });
    expect(result.run_id).toEqual(expect.any(String));
    const first = await told(reading);
    await command(url, NOBODY, "run.start", { assistant_id: "nested", input: {} });
    const both = await told(await open(url, NOBODY, filter), 2);
    expect(both.slice(0, first.length)).toEqual(first);
    const ids = both.map(({ event_id }) => event_id);
    expect(new Set(ids).size).toBe(ids.length);
    const numbers = both.map(({ seq }) => seq);
    expect(numbers[0]).toBe(2);
    expect(numbers).toEqual(numbers.toSorted((a, b) => a - b));
    expect(both.map(({ method }) => method)).toEqual(
      expect.arrayContaining(["lifecycle", "checkpoints", "values", "tasks", "updates", "messages"]),
    );
    expect(both.filter(isTerminal)).toHaveLength(2);
    expect(first.at(-1)).toMatchObject({ params: { data: { event: "completed", graph_name: "nested" } } });
    const { meta } = await command(url, NOBODY, "agent.getTree");
    expect(meta?.applied_through_seq).toBe(both.at(-1)?.seq);
  });

  test("goes on above a number, wherever that is", async () => {
    const { url } = await serve({ graphs: { nested } });
    const filter = { channels: ALL };
    await command(url, NOBODY, "run.start", { assistant_id: "nested", input: {} });
    const whole = await told(await open(url, NOBODY, filter));
    for (const { seq } of whole.slice(0, -1)) {
      const rest = await told(await open(url, NOBODY, { ...filter, since: seq }));
      expect(rest).toEqual(whole.filter((event) => event.seq > seq));
    }
  });

  test("shows the channels and namespaces that were asked for", async () => {
    const { url } = await serve({ graphs: { nested } });
    await command(url, NOBODY, "run.start", { assistant_id: "nested", input: {} });
    const whole = await told(await open(url, NOBODY, { channels: ALL }));
    const asked = async (filter: object) => {
      const reading = await open(url, NOBODY, filter);
      // The test waits for this event as the last one.
      return reading;
    };
    const root = await told(await asked({ channels: ["lifecycle", "values"], namespaces: [[]], depth: 0 }));
    const isWanted = ({ method }: Told) => ["lifecycle", "values"].includes(method);
    expect(root).toEqual(whole.filter((one) => isWanted(one) && one.params.namespace.length === 0));
    const within = whole.filter(({ params }) => params.namespace[0]?.startsWith("sub:"));
    const sub = await asked({ channels: ALL, namespaces: [["sub"]] });
    const found = await untilSent(sub, (sent) => sent.length === within.length);
    await sub.leave();
    expect(found.map(({ data }) => data)).toEqual(within);
    expect(within.map(({ method }) => method)).toEqual(
      expect.arrayContaining(["messages", "values", "lifecycle"]),
    );
  });

  test("tells a cancelled run as interrupted", async () => {
    const { halt, reached } = halting();
    const { url } = await serve({ graphs: { halt } });
    const reading = await open(url, NOBODY, { channels: ["lifecycle"] });
    const { result } = await command(url, NOBODY, "run.start", { assistant_id: "halt", input: {} });
    await reached;
    await post(`${url}/threads/${NOBODY}/runs/${result.run_id}/cancel?wait=true`);
    const events = await told(reading);
    expect(events.map(({ params }) => params.data.event)).toEqual(["running", "interrupted"]);
  });

  test("is the same after a restart of the server", async () => {
    const data = await directory();
    const first = await serve({ graphs: { nested }, data });
    await command(first.url, NOBODY, "run.start", { assistant_id: "nested", input: {} });
    const before = await told(await open(first.url, NOBODY, { channels: ALL }));
    await first.close();
    const { url } = await serve({ graphs: { nested }, data });
    expect(await told(await open(url, NOBODY, { channels: ALL }))).toEqual(before);
  });

  test.each([
    [{}, "channels"],
    [{ channels: [] }, "channels"],
    [{ channels: ["nope"] }, "channels[0]"],
    [{ channels: ["values"], namespaces: ["a"] }, "namespaces[0]"],
    [{ channels: ["values"], depth: -1 }, "depth"],
    [{ channels: ["values"], since: 1.5 }, "since"],
  ])("%j is refused", async (filter, at) => {
    const { url } = await serve();
    const response = await post(`${url}/threads/${NOBODY}/stream/events`, filter);
    expect(response.status).toBe(422);
    expect(await response.json()).toMatchObject({ errors: [{ at }] });
  });
});

describe("commands", () => {
  test.each([
    [{ method: "state.get" }, "id"],
    [{ id: -1, method: "state.get" }, "id"],
    [{ id: 1 }, "method"],
    [{ id: 1, method: "state.get", params: [] }, "params"],
  ])("%j is none", async (body, at) => {
    const { url } = await serve();
    const response = await post(`${url}/threads/${NOBODY}/commands`, body);
    expect(response.status).toBe(422);
    expect(await response.json()).toMatchObject({ errors: [{ at }] });
  });

  test.each([
    ["run.start", {}, "invalid_argument"],
    ["run.start", { assistant_id: "nope" }, "invalid_argument"],
    ["state.get", { namespace: "x" }, "invalid_argument"],
    ["state.fork", {}, "invalid_argument"],
    ["subscription.subscribe", { channels: ["values"] }, "unknown_command"],
    ["nonsense", {}, "unknown_command"],
  ])("%s %j: %s", async (method, params, error) => {
    const { url } = await serve();
    expect(await command(url, NOBODY, method, params)).toMatchObject({ type: "error", error });
  });

  test("several questions are answered in one run", async () => {
    const ask = graph({
      state: { log: list<string>() },
      nodes: {
        a: async (_, ctx) => ({ log: [String(await ctx.interrupt("a?"))] }),
        b: async (_, ctx) => ({ log: [String(await ctx.interrupt("b?"))] }),
      },
      edges: { start: ["a", "b"] },
    });
    const { url } = await serve({ graphs: { ask } });
    await command(url, NOBODY, "run.start", { assistant_id: "ask", input: {} });
    const events = await told(await open(url, NOBODY, { channels: ["input", "lifecycle"] }));
    const asked = events.flatMap(({ method, params }) =>
      method === "input.requested" ? [params.data as { interrupt_id: string; payload: string }] : [],
    );
    expect(asked.map(({ payload }) => payload)).toEqual(["a?", "b?"]);
    const responses = asked.map(({ interrupt_id, payload }) => ({
      namespace: [],
      interrupt_id,
      response: payload.toUpperCase(),
    }));
    const { type, result } = await command(url, NOBODY, "input.respond", { responses });
    expect(type).toBe("success");
    expect(await (await fetch(`${url}/threads/${NOBODY}/runs/${result.run_id}/join`)).json()).toEqual({
      log: ["A?", "B?"],
    });
  });
});

describe("a socket of the protocol", () => {
  const dial = async (url: string) => {
    const socket = new WebSocket(`${url.replace("http", "ws")}/threads/${NOBODY}/stream/events`);
    const got: (Told & {
      type: string;
      id?: number | null;
      error?: string;
      message?: string;
      result?: { subscription_id?: string };
    })[] = [];
    socket.on("message", (bytes: Buffer) => {
      got.push(JSON.parse(bytes.toString()) as (typeof got)[number]);
    });
    await new Promise((resolve) => socket.on("open", resolve));
    return {
      got,
      send: (message: unknown) =>
        socket.send(typeof message === "string" ? message : JSON.stringify(message)),
      until: (isIt: () => boolean) =>
        vi.waitFor(() => expect(isIt(), JSON.stringify(got)).toBe(true), { timeout: 30_000, interval: 5 }),
      close: () => socket.close(),
    };
  };

  test("answers a subscription before its first event, and sends each event once, whoever wants it", async () => {
    const { url } = await serve({ graphs: { nested } });
    const { got, send, until, close } = await dial(url);
    send({ id: 1, method: "subscription.subscribe", params: { channels: ["lifecycle"] } });
    send({ id: 2, method: "run.start", params: { assistant_id: "nested", input: {} } });
    await until(() => got.some((one) => one.type === "event" && isTerminal(one)));
    expect(got[0]).toMatchObject({
      type: "success",
      id: 1,
      result: { subscription_id: expect.any(String) as unknown },
    });
    const before = got.length;
    send({ id: 3, method: "subscription.subscribe", params: { channels: ["values", "lifecycle"] } });
    await until(() => got.slice(before).some((one) => one.type === "event" && isTerminal(one)));
    const late = got.slice(before);
    expect(late[0]).toMatchObject({ type: "success", id: 3 });
    send({ id: 4, method: "run.start", params: { assistant_id: "nested", input: {} } });
    const after = got.length;
    await until(() => got.slice(after).some((one) => one.type === "event" && isTerminal(one)));
    const second = got.slice(after).filter(({ type }) => type === "event");
    expect(new Set(second.map(({ event_id }) => event_id)).size).toBe(second.length);
    const whole = await told(await open(url, NOBODY, { channels: ["values", "lifecycle"] }), 2);
    const replayed = late.filter(({ type }) => type === "event");
    expect([...replayed, ...second]).toEqual(whole);
    close();
  });

  test("reconnecting is not supported, and said so", async () => {
    const { url } = await serve();
    const { got, send, until, close } = await dial(url);
    send({ id: 5, method: "subscription.reconnect", params: { run_id: NOBODY } });
    await until(() => got.length === 1);
    expect(got[0]).toMatchObject({ type: "error", id: 5, error: "not_supported" });
    close();
  });

  test("an unsubscribed one is sent nothing more, and one that is unknown is refused", async () => {
    const { url } = await serve({ graphs: { nested } });
    const { got, send, until, close } = await dial(url);
    send({ id: 1, method: "subscription.subscribe", params: { channels: ["lifecycle"] } });
    await until(() => got.length === 1);
    const { subscription_id } = got[0]?.result ?? {};
    send({ id: 2, method: "subscription.unsubscribe", params: { subscription_id } });
    send({ id: 3, method: "subscription.unsubscribe", params: { subscription_id } });
    send({ id: 4, method: "run.start", params: { assistant_id: "nested", input: {} } });
    send({ id: 5, method: "subscription.subscribe", params: { channels: ["nope"] } });
    send({ id: 6 });
    send("nonsense");
    send({ id: 6, method: "state.get", params: {} });
    await until(() => got.filter(({ type }) => type !== "event").length >= 8);
    expect(got.map(({ type, id, error }) => [type, id, error])).toEqual(
      expect.arrayContaining([
        ["success", 1, undefined],
        ["success", 2, undefined],
        ["error", 3, "no_such_subscription"],
        ["success", 4, undefined],
        ["error", 5, "invalid_argument"],
        ["error", 6, "invalid_argument"],
        ["error", null, "invalid_argument"],
      ]),
    );
    expect(
      got.find(({ message }) => message === "id 6 is that of an earlier command on this socket"),
    ).toMatchObject({
      type: "error",
      id: 6,
      error: "invalid_argument",
    });
    close();
  });
});

describe.each(transports)("a connection over %s that breaks off in the middle", (transport) => {
  test("is taken up again: nothing is missing, nothing is there twice", async () => {
    const { halt, reached, open: letGo } = halting();
    const { url } = await serve({ graphs: { halt } });
    const proxy = await proxyTo(url);
    const { thread, threadId } = streamOf(proxy.url, transport, "halt");
    const streamed = thread.messages;
    const events = await thread.subscribe({ channels: ["messages", "values", "lifecycle"] });
    await thread.run.start({ input: {} });
    await reached;
    const first = await events[Symbol.asyncIterator]().next();
    expect(first.value).toMatchObject({ method: "lifecycle" });
    proxy.cut();
    letGo();
    const rest = await all(events);
    const seen = [first.value, ...rest].map((event) => (event as unknown as Told).event_id);
    const whole = await told(await open(url, threadId, { channels: ["messages", "values", "lifecycle"] }));
    expect(seen).toEqual(whole.map(({ event_id }) => event_id));
    const [message] = await all(streamed);
    expect(await message?.text).toBe("one two");
  });
});
