import { describe, expect, test } from "vitest";
import { assign, fromPromise, setup } from "xstate";
import order from "../../src/demo/order.ts";
import { connectAs, headersOf, owned } from "./support/auth.ts";
import { lines } from "./support/clients.ts";
import { heldCalls } from "./support/latches.ts";
import { directory, serve, type Server } from "./support/server.ts";
import { dial } from "./support/sockets.ts";
import { aUuid, get, newThread, NOBODY, post, postJson } from "./support/wire.ts";

const connect = (lines[0] as (typeof lines)[number])[1];

interface Sent {
  readonly run_id: string;
  readonly thread_id: string;
  readonly status: string;
}

interface Order {
  readonly amount: number;
}

interface Run {
  readonly run_id: string;
  readonly status: string;
}

/** The demo's order; charging waits until the test ends it. */
function heldOrder() {
  const { work, calls, waiting } = heldCalls<string>();
  return {
    graphs: { order: order.provide({ actors: { charge: fromPromise<string, Order>(work) } }) },
    calls,
    waiting,
  };
}

/** The requests of a test for one thread. */
function at({ url }: Pick<Server, "url">, thread: string) {
  const path = `${url}/threads/${thread}`;
  const json = async (of: string) => (await (await get(path + of)).json()) as unknown;
  return {
    send: (event: unknown, headers: Record<string, string> = {}) =>
      fetch(`${path}/events`, {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body: JSON.stringify(event),
      }),
    sent: (event: unknown) => postJson<Sent>(`${path}/events`, event),
    begin: (input: object = {}) => postJson(`${path}/runs/wait`, { assistant_id: "order", input }),
    possible: () => json("/events/possible"),
    record: () => json(""),
    runs: async () => (await json("/runs")) as readonly Run[],
    join: (run: string) => json(`/runs/${run}/join`) as Promise<Readonly<Record<string, unknown>>>,
  };
}

async function onThread(server: Pick<Server, "url">) {
  const thread = await newThread(server.url);
  return { thread, ...at(server, thread) };
}

const NONE = { events: [], state: null, interrupt_id: null };

describe("the events that are possible", () => {
  test("are those of the state that the machine waits in, each with its schema", async () => {
    const { begin, possible, record, sent, join } = await onThread(await serve({ graphs: { order } }));
    expect(await possible()).toEqual(NONE);
    await begin({ amount: 2_000 });
    const { interrupts } = (await record()) as { interrupts: Record<string, { id: string }[]> };
    const schema = (type: string) => ({
      type: "object",
      required: ["type"],
      properties: { type: { const: type } },
    });
    expect(await possible()).toEqual({
      events: ["APPROVE", "REJECT"].map((type) => ({ type, schema: schema(type) })),
      state: "reviewing",
      interrupt_id: Object.values(interrupts).flat()[0]?.id,
    });
    await join((await sent({ type: "APPROVE" })).run_id);
    expect(await possible()).toMatchObject({
      state: "declined",
      events: [{ type: "RETRY" }, { type: "REJECT" }],
    });
    await join((await sent({ type: "REJECT" })).run_id);
    expect(await possible()).toEqual(NONE);
  });

  test("are none where the state of an actor at work handles none, nor where the question is not a machine's", async () => {
    const { graphs, calls, waiting } = heldOrder();
    const server = await serve({ graphs });
    const { begin, possible, sent, join } = await onThread(server);
    await begin();
    const { run_id } = await sent({ type: "APPROVE" });
    await calls(1);
    expect(await possible()).toEqual({ ...NONE, state: "charging" });
    waiting[0]?.open("r");
    await join(run_id);
    const other = await onThread(server);
    await postJson(`${server.url}/threads/${other.thread}/runs/wait`, {
      assistant_id: "approval",
      input: {},
    });
    expect(await other.possible()).toEqual(NONE);
    expect((await get(`${server.url}/threads/${NOBODY}/events/possible`)).status).toBe(404);
  });
});

describe("an event", () => {
  test("is stored with the run that takes it, and answered with that", async () => {
    const { thread, begin, send, join } = await onThread(await serve({ graphs: { order } }));
    await begin();
    const answer = await send({ type: "APPROVE" });
    const { run_id, ...rest } = (await answer.json()) as Sent;
    expect([answer.status, run_id, rest]).toEqual([202, aUuid, { thread_id: thread, status: "pending" }]);
    expect(answer.headers.get("content-location")).toBe(`/threads/${thread}/runs/${run_id}`);
    expect(await join(run_id)).toMatchObject({ __state__: "paid", receipt: "Received: 20" });
  });

  test("has all its members, null too", async () => {
    const noting = setup({ types: { context: {} as { event: unknown } } }).createMachine({
      context: { event: null },
      initial: "open",
      states: { open: { on: { "note.*": { actions: assign({ event: ({ event }) => event }) } } } },
    });
    const server = await serve({ graphs: { order: noting } });
    const { begin, possible, sent, join } = await onThread(server);
    await begin();
    expect(await possible()).toMatchObject({
      events: [{ type: "note.*", schema: { properties: { type: { type: "string" } } } }],
    });
    const event = { type: "note.text", by: null, text: { lines: ["a", null] } };
    expect(await join((await sent(event)).run_id)).toMatchObject({ event });
  });

  test("that comes while a run is busy waits its turn: all are taken, in their order", async () => {
    const { graphs, calls, waiting } = heldOrder();
    const { begin, sent, join, runs } = await onThread(await serve({ graphs }));
    await begin();
    const first = await sent({ type: "APPROVE" });
    await calls(1);
    const [retry, reject] = [await sent({ type: "RETRY" }), await sent({ type: "REJECT" })];
    expect((await runs()).map(({ status }) => status)).toEqual(["pending", "pending", "running", "success"]);
    waiting[0]?.fail(new Error("no"));
    expect(await join(first.run_id)).toMatchObject({ __state__: "declined" });
    await calls(2);
    waiting[1]?.fail(new Error("no"));
    expect(await join(retry.run_id)).toMatchObject({ __state__: "declined" });
    expect(await join(reject.run_id)).toMatchObject({ __state__: "rejected" });
    expect((await runs()).map(({ status }) => status)).toEqual(Array.from({ length: 4 }, () => "success"));
  });

  test("that the machine cannot take is refused while it waits, and nothing changes", async () => {
    const { begin, send, record, runs } = await onThread(await serve({ graphs: { order } }));
    await begin();
    const before = [await record(), await runs()];
    const refused = await send({ type: "SHIP" });
    expect([refused.status, await refused.json()]).toMatchObject([
      422,
      {
        detail: 'type is "SHIP"; the machine can take APPROVE, REJECT',
        code: "validation.failed",
        errors: [{ at: "type" }],
      },
    ]);
    expect([await record(), await runs()]).toEqual(before);
  });

  test.each([
    ["at 240 levels", 238, 0, 202],
    ["deeper", 239, 0, 'type is "APPROVE", with data that are nested deeper than 240 levels'],
    ["with 10,000 values", 0, 9_998, 202],
    ["with more", 0, 9_999, 'type is "APPROVE", with data that have more than 10000 values'],
  ])("%s is taken, or refused before it is acknowledged", async (_, levels, values, expected) => {
    const { begin, send, record } = await onThread(await serve({ graphs: { order } }));
    await begin();
    const before = await record();
    let by: unknown = Array.from({ length: values }, () => 0);
    for (let level = 0; level < levels; level++) by = [by];
    const answer = await send({ type: "APPROVE", by });
    if (typeof expected === "number") return expect(answer.status).toBe(expected);
    expect([answer.status, await answer.json()]).toMatchObject([422, { detail: expected }]);
    expect(await record()).toEqual(before);
  });

  test("with data that cannot be stored is refused in the words of the event", async () => {
    const { begin, send } = await onThread(await serve({ graphs: { order } }));
    await begin();
    const refused = await send(JSON.parse('{"type": "APPROVE", "by": {"__proto__": {"admin": true}}}'));
    expect([refused.status, await refused.json()]).toMatchObject([
      422,
      { detail: expect.stringMatching(/^event\.by\.__proto__ cannot be stored/), errors: [{ at: "event" }] },
    ]);
  });

  test("that the machine cannot take when its turn comes fails its run, and the question stays for the next", async () => {
    const { graphs, calls, waiting } = heldOrder();
    const { begin, possible, record, sent, join, runs } = await onThread(await serve({ graphs }));
    await begin();
    await sent({ type: "APPROVE" });
    await calls(1);
    const wrong = await sent({ type: "APPROVE" });
    waiting[0]?.fail(new Error("no"));
    expect(await join(wrong.run_id)).toMatchObject({
      __error__: { message: expect.stringMatching(/"APPROVE"; the machine can take RETRY, REJECT/) },
    });
    expect((await runs())[0]).toMatchObject({ status: "error" });
    expect(await record()).toMatchObject({ status: "interrupted" });
    expect(await possible()).toMatchObject({
      state: "declined",
      events: [{ type: "RETRY" }, { type: "REJECT" }],
    });
    expect(await join((await sent({ type: "REJECT" })).run_id)).toMatchObject({ __state__: "rejected" });
  });

  test("behind a run that is cancelled while an actor works fails, says so, and is taken once the machine goes on", async () => {
    const { graphs, calls, waiting } = heldOrder();
    const server = await serve({ graphs });
    const { thread, begin, sent, send, join } = await onThread(server);
    await begin();
    const { run_id } = await sent({ type: "APPROVE" });
    await calls(1);
    const queued = await sent({ type: "REJECT" });
    await post(`${server.url}/threads/${thread}/runs/${run_id}/cancel?wait=true`, {});
    expect(await join(queued.run_id)).toMatchObject({
      __error__: {
        message: expect.stringMatching(/^Nothing waits for an answer or an event; go on .* with input null/),
      },
    });
    expect((await send({ type: "REJECT" })).status).toBe(422);
    const path = `${server.url}/threads/${thread}/runs`;
    const again = await postJson<Run>(path, { assistant_id: "order", input: null });
    await calls(2);
    const later = await sent({ type: "REJECT" });
    waiting[1]?.fail(new Error("no"));
    await join(again.run_id);
    expect(await join(later.run_id)).toMatchObject({ __state__: "rejected" });
  });

  test("is refused where no machine waits for one", async () => {
    const server = await serve({ graphs: { order } });
    const { url } = server;
    const refusal = async (thread: string, event: unknown = { type: "APPROVE" }) => {
      const answer = await post(`${url}/threads/${thread}/events`, event);
      return [answer.status, ((await answer.json()) as { detail: string }).detail];
    };
    const [fresh, done, other] = [await onThread(server), await onThread(server), await onThread(server)];
    expect(await refusal(fresh.thread)).toEqual([422, expect.stringMatching(/^No run has been started/)]);
    await done.begin();
    await done.join((await done.sent({ type: "REJECT" })).run_id);
    expect(await refusal(done.thread)).toEqual([422, "The machine of this thread waits for no event"]);
    await postJson(`${url}/threads/${other.thread}/runs/wait`, { assistant_id: "approval", input: {} });
    expect(await refusal(other.thread)).toEqual([422, expect.stringMatching(/"approval" .* is no machine/)]);
    expect(await refusal(NOBODY)).toEqual([404, expect.any(String)]);
    expect(await refusal(done.thread, {})).toEqual([422, "type is required"]);
    expect(await refusal(done.thread, "[]")).toEqual([422, "body must be a JSON object"]);
    expect(await fresh.runs()).toEqual([]);
    expect(await done.runs()).toHaveLength(2);
    expect(await other.runs()).toHaveLength(1);
  });

  test("of a type that XState keeps for itself is never taken, whatever the machine handles", async () => {
    const open = setup({}).createMachine({ initial: "a", states: { a: { on: { "*": "b" } }, b: {} } });
    const { begin, send, runs } = await onThread(await serve({ graphs: { order: open } }));
    await begin();
    for (const type of ["xstate.stop", "xstate.done.actor.charge"]) {
      // oxlint-disable-next-line no-await-in-loop -- a thread takes one event at a time
      const answer = await send({ type });
      expect(answer.status).toBe(422);
    }
    expect(await runs()).toHaveLength(1);
  });

  test("has the metadata of the query in its run", async () => {
    const server = await serve({ graphs: { order } });
    const { thread, begin, runs } = await onThread(server);
    await begin();
    const path = `${server.url}/threads/${thread}/events`;
    for (const wrong of ["[]", "5", "{", ""]) {
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      const refused = await post(`${path}?metadata=${encodeURIComponent(wrong)}`, { type: "APPROVE" });
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      expect([refused.status, await refused.json()]).toMatchObject([
        422,
        { detail: "metadata must be a JSON object" },
      ]);
    }
    await postJson(`${path}?metadata=${encodeURIComponent('{"from": "shop"}')}`, { type: "APPROVE" });
    expect(await runs()).toMatchObject([{ metadata: { from: "shop" } }, {}]);
  });

  test("that no state handles is refused also while another event is being admitted", async () => {
    const server = await serve({ graphs: { order } });
    for (let round = 0; round < 10; round++) {
      const { begin, send, runs } = await onThread(server);
      await begin({ amount: 2_000 });
      const [taken, refused] = await Promise.all([send({ type: "APPROVE" }), send({ type: "NOPE" })]);
      expect([taken.status, refused.status]).toEqual([202, 422]);
      expect(await refused.json()).toMatchObject({
        detail: expect.stringMatching(/^type is "NOPE"; the machine (can take|takes) /) as unknown,
        errors: [{ at: "type" }],
      });
      expect(await runs()).toHaveLength(2);
    }
  });

  test("sent again under one idempotency key is taken once", async () => {
    const { begin, send, join, runs } = await onThread(await serve({ graphs: { order } }));
    await begin();
    const key = { "idempotency-key": "approve once" };
    const answers = await Promise.all([0, 1].map(() => send({ type: "APPROVE" }, key)));
    const [one, two] = (await Promise.all(answers.map((answer) => answer.json()))) as Sent[];
    expect(two).toEqual(one);
    await join(one?.run_id ?? "");
    // The machine can no longer take the event, but the request is a repetition, and is not checked again.
    expect(await (await send({ type: "APPROVE" }, key)).json()).toEqual(one);
    expect((await send({ type: "REJECT" }, key)).status).toBe(422);
    expect(await runs()).toHaveLength(2);
  });

  test("that was acknowledged is taken after a restart, in order", async () => {
    const data = await directory();
    const old = heldOrder();
    const first = await serve({ data, graphs: old.graphs });
    const { thread, begin, sent } = await onThread(first);
    await begin();
    await sent({ type: "APPROVE" });
    await old.calls(1);
    const [retry, reject] = [await sent({ type: "RETRY" }), await sent({ type: "REJECT" })];
    await first.close(0);

    const anew = heldOrder();
    const { join } = at(await serve({ data, graphs: anew.graphs }), thread);
    for (const count of [1, 2]) {
      // oxlint-disable-next-line no-await-in-loop -- each attempt needs the failure of the one before
      (await anew.calls(count))[count - 1]?.fail(new Error("no"));
    }
    expect(await join(retry.run_id)).toMatchObject({ __state__: "declined" });
    expect(await join(reject.run_id)).toMatchObject({ __state__: "rejected" });
  });

  test("is sent over the thread's socket as over HTTP", async () => {
    const server = await serve({ graphs: { order } });
    const { thread, begin, join } = await onThread(server);
    await begin();
    const socket = await dial(`${server.url}/threads/${thread}/stream`);
    const send = (id: number, event?: unknown) => socket.ask({ type: "event", id, event });
    expect(await send(1, { type: "SHIP" })).toMatchObject({
      type: "error",
      status: 422,
      detail: expect.stringMatching(/can take APPROVE, REJECT/),
    });
    expect(await send(2)).toMatchObject({
      type: "error",
      status: 422,
      detail: "event must be a JSON object",
    });
    expect(await send(3, {})).toMatchObject({ type: "error", status: 422, detail: "type is required" });
    const taken = await send(4, { type: "APPROVE" });
    expect(taken).toEqual({ type: "ack", id: 4, run_id: aUuid });
    expect(await join(taken.run_id ?? "")).toMatchObject({ __state__: "paid" });
  });

  test("is sent by who may read the thread and start runs on it", async () => {
    const { url } = await serve({ graphs: { order }, auth: owned() });
    const client = connectAs(url, "alice");
    const { thread_id } = await client.threads.create();
    await client.runs.wait(thread_id, "order", { input: {} });
    const path = `/threads/${thread_id}/events`;
    const send = (name: "alice" | "bob") =>
      fetch(url + path, { method: "POST", headers: headersOf(name), body: '{"type":"APPROVE"}' });
    expect((await get(`${url}${path}/possible`, headersOf("bob"))).status).toBe(404);
    expect((await get(`${url}${path}/possible`, headersOf("alice"))).status).toBe(200);
    expect((await send("bob")).status).toBe(404);
    const { run_id } = (await (await send("alice")).json()) as Sent;
    expect(await client.runs.join(thread_id, run_id)).toMatchObject({ __state__: "paid" });
    const { kwargs } = (await client.runs.get(thread_id, run_id)) as unknown as {
      kwargs: { config: { configurable: object } };
    };
    expect(kwargs.config.configurable).toMatchObject({ langgraph_auth_user_id: "alice" });
  });

  test("of another tenant finds no thread", async () => {
    const server = await serve({ graphs: { order }, keys: ["mine", "acme:theirs"] });
    const client = connect(server.url, "mine");
    const { thread_id } = await client.threads.create();
    await client.runs.wait(thread_id, "order", { input: {} });
    const { send } = at(server, thread_id);
    expect((await send({ type: "APPROVE" }, { "x-api-key": "theirs" })).status).toBe(404);
    expect((await send({ type: "APPROVE" }, { "x-api-key": "mine" })).status).toBe(202);
  });
});
