import { describe, expect, test } from "vitest";
import { graph, list, value } from "../../src/index.ts";
import { lines } from "./support/clients.ts";
import { gated } from "./support/latches.ts";
import { serve } from "./support/server.ts";
import { aHex32, aTime, aUuid, get, newThread, NOBODY, post, postJson } from "./support/wire.ts";

const two = graph({
  state: { log: list<string>(), topic: value("nothing") },
  nodes: {
    first: async ({ topic }) => ({ log: [`first about ${topic}`] }),
    second: async ({ log }) => ({ log: [`second after ${log.length}`] }),
  },
  edges: { start: "first", first: "second" },
});

const fails = graph({
  state: { log: list<string>() },
  nodes: {
    good: async () => ({ log: ["good"] }),
    bad: async () => {
      throw new TypeError("kaboom");
    },
  },
  edges: { start: "good", good: "bad" },
});

const beside = graph({
  state: { log: list<string>() },
  nodes: {
    asks: async (_, ctx) => ({ log: [String(await ctx.interrupt("well?"))] }),
    writes: async () => ({ log: ["written"] }),
  },
  edges: { start: ["asks", "writes"] },
});

const done = { topic: "tea", log: ["first about tea", "second after 1"] };

describe.each(lines)("threads over %s", (_, connect) => {
  const start = async () => {
    const held = gated();
    const { url } = await serve({ graphs: { two, fails, beside, held: held.held } });
    return { client: connect(url), url, ...held };
  };

  test("a new thread has every field of a thread, and nothing in it", async () => {
    const { client } = await start();
    const thread = await client.threads.create();
    expect(thread).toEqual({
      thread_id: aUuid,
      created_at: aTime,
      updated_at: thread.created_at,
      state_updated_at: thread.created_at,
      metadata: {},
      status: "idle",
      config: {},
      values: null,
      interrupts: {},
    });
    expect(await client.threads.get(thread.thread_id)).toEqual(thread);
  });

  test("metadata and the id may be given; a graph's id becomes metadata", async () => {
    const { client } = await start();
    const threadId = "6f2c1de0-6b43-4a4b-9a53-5f0d1a1c0b2d";
    const metadata = { for: "a test", deep: { list: [1, null, "x"] } };
    const thread = await client.threads.create({ threadId, metadata, graphId: "two" });
    expect(thread.thread_id).toBe(threadId);
    expect(thread.metadata).toEqual({ ...metadata, graph_id: "two" });
  });

  test("an id that is taken is refused, or answered with the thread that has it", async () => {
    const { client } = await start();
    const { thread_id } = await client.threads.create({ metadata: { mine: true } });
    await expect(client.threads.create({ threadId: thread_id })).rejects.toMatchObject({ status: 409 });
    await expect(client.threads.create({ threadId: thread_id, ifExists: "raise" })).rejects.toMatchObject({
      status: 409,
    });
    const again = await client.threads.create({
      threadId: thread_id,
      ifExists: "do_nothing",
      metadata: { mine: false },
    });
    expect(again).toEqual(await client.threads.get(thread_id));
    expect(again.metadata).toEqual({ mine: true });
  });

  test("an unknown thread is 404, for itself and for its state", async () => {
    const { client } = await start();
    const text = expect.stringContaining(`Thread with ID ${NOBODY} not found`) as unknown;
    await expect(client.threads.get(NOBODY)).rejects.toMatchObject({ status: 404, message: text });
    await expect(client.threads.getState(NOBODY)).rejects.toMatchObject({ status: 404, message: text });
  });

  test("the state of a thread that has not run is empty, and no error", async () => {
    const { client } = await start();
    const { thread_id } = await client.threads.create();
    expect(await client.threads.getState(thread_id)).toEqual({
      values: {},
      next: [],
      tasks: [],
      metadata: {},
      created_at: null,
      checkpoint: null,
      parent_checkpoint: null,
      interrupts: [],
      checkpoint_id: null,
      parent_checkpoint_id: null,
    });
  });

  test("the state after a run tells values, checkpoint and who wrote it", async () => {
    const { client } = await start();
    const { thread_id } = await client.threads.create();
    await client.runs.wait(thread_id, "two", { input: { topic: "tea" } });
    const [run] = await client.runs.list(thread_id);
    const state = await client.threads.getState(thread_id);
    const at = (id: unknown) => ({ thread_id, checkpoint_ns: "", checkpoint_id: id, checkpoint_map: null });
    expect(state).toEqual({
      values: done,
      next: [],
      tasks: [],
      metadata: {
        source: "loop",
        step: 2,
        parents: {},
        writes: { second: { log: ["second after 1"] } },
        run_id: run?.run_id,
        thread_id,
        graph_id: "two",
        assistant_id: run?.assistant_id,
        created_by: "system",
        user_id: "",
      },
      created_at: aTime,
      checkpoint: at(aUuid),
      parent_checkpoint: at(aUuid),
      interrupts: [],
      checkpoint_id: state.checkpoint.checkpoint_id,
      parent_checkpoint_id: state.parent_checkpoint?.checkpoint_id,
    });
    expect(state.checkpoint.checkpoint_id).not.toBe(state.parent_checkpoint?.checkpoint_id);
  });

  test("the next run goes on from the state: steps count on, the first parent is the last checkpoint", async () => {
    const { client } = await start();
    const { thread_id } = await client.threads.create();
    await client.runs.wait(thread_id, "two", { input: { topic: "tea" } });
    const log = [...done.log, "first about milk", "second after 3"];
    expect(await client.runs.wait(thread_id, "two", { input: { topic: "milk" } })).toEqual({
      topic: "milk",
      log,
    });
    const { metadata } = await client.threads.getState(thread_id);
    expect(metadata).toMatchObject({ step: 6, source: "loop" });
  });

  test("a thread is busy while a run is there, idle after it, and knows its graph", async () => {
    const { client, waits, open } = await start();
    const { thread_id } = await client.threads.create({ metadata: { mine: 1 } });
    const run = await client.runs.create(thread_id, "held", { input: { name: "a" } });
    await waits("a");
    const { assistant_id } = run;
    // A run may be a step ahead of what is stored.
    await expect
      .poll(() => client.threads.get(thread_id))
      .toMatchObject({
        status: "busy",
        metadata: { mine: 1, graph_id: "held", assistant_id },
        values: { name: "a", log: ["a began"] },
      });
    const busy = await client.threads.get(thread_id);
    const state = await client.threads.getState(thread_id);
    expect(state.next).toEqual(["hold"]);
    expect(state.tasks).toEqual([
      {
        id: aUuid,
        name: "hold",
        path: ["__pregel_pull", "hold"],
        error: null,
        interrupts: [],
        checkpoint: null,
        state: null,
        result: null,
      },
    ]);
    open("a");
    await client.runs.join(thread_id, run.run_id);
    const idle = await client.threads.get(thread_id);
    expect(idle).toMatchObject({ status: "idle", values: { log: ["a began", "a ended"] } });
    expect(Date.parse(idle.updated_at)).toBeGreaterThanOrEqual(Date.parse(busy.updated_at));
  });

  test("a task that has finished shows its result while another waits, and is not to run again", async () => {
    const { client } = await start();
    const { thread_id } = await client.threads.create();
    await client.runs.wait(thread_id, "beside", { input: {} });
    const state = await client.threads.getState<{ log: string[] }>(thread_id);
    expect(state.values).toEqual({ log: [] });
    expect(state.next).toEqual(["asks"]);
    const [asks, writes] = state.tasks;
    const [interrupt] = asks?.interrupts ?? [];
    expect(asks).toEqual({
      id: aUuid,
      name: "asks",
      path: ["__pregel_pull", "asks"],
      error: null,
      interrupts: [{ id: aHex32, value: "well?", resumable: true, ns: [`asks:${asks?.id}`], when: "during" }],
      checkpoint: null,
      state: null,
      result: null,
    });
    expect(writes).toEqual({
      ...asks,
      id: aUuid,
      name: "writes",
      path: ["__pregel_pull", "writes"],
      interrupts: [],
      result: { log: ["written"] },
    });
    expect(state).toMatchObject({ interrupts: [interrupt] });
    expect((await client.threads.get(thread_id)).interrupts).toEqual({ [asks?.id ?? ""]: [interrupt] });
    await client.runs.wait(thread_id, "beside", { command: { resume: "yes" } });
    expect(await client.threads.getState(thread_id)).toMatchObject({
      values: { log: ["yes", "written"] },
      next: [],
      tasks: [],
      interrupts: [],
      metadata: { source: "loop", writes: { asks: { log: ["yes"] }, writes: { log: ["written"] } } },
    });
  });

  test("after a failure the thread is in error, keeps what was good, and runs again", async () => {
    const { client } = await start();
    const { thread_id } = await client.threads.create();
    const failed = client.runs.wait(thread_id, "fails", { input: {} });
    await expect(failed).rejects.toThrow("TypeError: kaboom");
    expect(await client.threads.get(thread_id)).toMatchObject({
      status: "error",
      values: { log: ["good"] },
      interrupts: {},
      error: { error: "TypeError", message: "kaboom" },
    });
    const { next, tasks } = await client.threads.getState(thread_id);
    expect(next).toEqual(["bad"]);
    expect(tasks).toMatchObject([{ name: "bad", interrupts: [] }]);
    expect(JSON.parse(tasks[0]?.error ?? "null")).toEqual({ name: "TypeError", message: "kaboom" });

    await client.runs.wait(thread_id, "two", { input: { topic: "tea" } });
    expect(await client.threads.get(thread_id)).toMatchObject({ status: "idle" });
  });
});

describe("a thread whose run failed", () => {
  test("goes on with input null at the node that failed; what was good is not done again", async () => {
    let broken = true;
    const flaky = graph({
      state: { log: list<string>() },
      nodes: {
        good: async () => ({ log: ["good"] }),
        bad: async () => {
          if (broken) throw new TypeError("kaboom");
          return { log: ["mended"] };
        },
      },
      edges: { start: "good", good: "bad" },
    });
    const { url } = await serve({ graphs: { flaky } });
    const thread = await newThread(url);
    const wait = (input: object | null) =>
      postJson(`${url}/threads/${thread}/runs/wait`, { assistant_id: "flaky", input });
    expect(await wait({})).toEqual({ __error__: { error: "TypeError", message: "kaboom" } });
    broken = false;
    expect(await wait(null)).toEqual({ log: ["good", "mended"] });
    const state = (await (await get(`${url}/threads/${thread}`)).json()) as object;
    expect(state).toMatchObject({ status: "idle" });
    expect(state).not.toHaveProperty("error");
  });
});

describe("threads, byte by byte", () => {
  test("a thread is created by an empty body too, and by any content type", async () => {
    const { url } = await serve();
    const empty = await fetch(`${url}/threads`, { method: "POST" });
    expect([empty.status, empty.headers.get("content-type")]).toEqual([200, "application/json"]);
    const text = await fetch(`${url}/threads`, { method: "POST", body: '{"metadata":{"a":1}}' });
    expect(await text.json()).toMatchObject({ metadata: { a: 1 } });
  });

  test("an id in capitals is the same thread", async () => {
    const { url } = await serve();
    const thread_id = "ABCDEF00-0000-4000-8000-00000000000A";
    const made = await postJson<{ thread_id: string }>(`${url}/threads`, { thread_id });
    expect(made.thread_id).toBe(thread_id.toLowerCase());
    expect(await (await get(`${url}/threads/${thread_id}`)).json()).toEqual(made);
    expect((await post(`${url}/threads`, { thread_id })).status).toBe(409);
  });

  test("a state's fields may be chosen; one key of the values alone is read", async () => {
    const { url } = await serve({ graphs: { two } });
    const thread = await newThread(url);
    await postJson(`${url}/threads/${thread}/runs/wait`, { assistant_id: "two", input: { topic: "tea" } });
    const state = async (query: string) =>
      (await (await get(`${url}/threads/${thread}/state?${query}`)).json()) as Record<string, unknown>;
    const whole = await state("subgraphs=false");
    expect(whole["values"]).toEqual(done);
    expect(await state("select=values.topic")).toEqual({ values: { topic: "tea" } });
    expect(await state("select=values.topic&select=values.log")).toEqual({ values: done });
    expect(await state("select=next")).toEqual({ next: [] });
    expect(await state("select=values,tasks")).toEqual({ values: done, tasks: [] });
    const { checkpoint, metadata, created_at, parent_checkpoint_id } = whole;
    expect(await state("select=checkpoint,metadata")).toEqual({ checkpoint, metadata });
    const asked = { checkpoint: { thread_id: thread }, select: ["created_at", "parent_checkpoint_id"] };
    const posted = await postJson(`${url}/threads/${thread}/state/checkpoint`, asked);
    expect(posted).toEqual({ created_at, parent_checkpoint_id });
    const blank = `${url}/threads/${await newThread(url)}/state?select=next,values.topic`;
    expect(await (await get(blank)).json()).toEqual({ values: {}, next: [] });
  });

  test("two creations of one id at the same time: one thread, one conflict", async () => {
    const { url } = await serve();
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => post(`${url}/threads`, { thread_id: NOBODY })),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array(7).fill(409)]);
  });
});
