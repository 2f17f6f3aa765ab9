import { describe, expect, test } from "vitest";
import { graph, list, value } from "../../src/index.ts";
import { type Client, lines } from "./support/clients.ts";
import { directory, serve } from "./support/server.ts";

/** Waits until it is told to go on, so that a test decides how long a run takes. */
function gate() {
  let open: () => void = () => undefined;
  const opened = new Promise<void>((resolve) => (open = resolve));
  let reached: () => void = () => undefined;
  const running = new Promise<void>((resolve) => (reached = resolve));
  const held = graph({
    state: { log: list<string>(), name: value<string>() },
    nodes: {
      hold: async (state) => {
        reached();
        await opened;
        return { log: [`held ${state.name ?? "nobody"}`] };
      },
    },
    edges: { start: "hold" },
  });
  return { held, open, running };
}

const twoSteps = graph({
  state: { log: list<string>(), topic: value("nothing") },
  nodes: {
    first: async ({ topic }) => ({ log: [`first about ${topic}`] }),
    second: async ({ log }) => ({ log: [`second after ${log.length}`] }),
  },
  edges: { start: "first", first: "second" },
});

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const done = { topic: "tea", log: ["first about tea", "second after 1"] };

describe.each(lines)("%s", (_, connect) => {
  const start = async (options: Parameters<typeof serve>[0] = {}) => {
    const server = await serve({ ...options, graphs: { two: twoSteps, ...options.graphs } });
    return { client: connect(server.url), server };
  };

  test("threads.create, get and getState of a new thread", async () => {
    const { client } = await start();
    const thread = await client.threads.create({ metadata: { for: "a test" } });
    expect(thread).toMatchObject({ status: "idle", metadata: { for: "a test" }, values: null });
    expect(thread.thread_id).toMatch(UUID);
    expect(thread.created_at).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+\+00:00$/);
    expect(await client.threads.get(thread.thread_id)).toEqual(thread);
    const state = await client.threads.getState(thread.thread_id);
    expect(state).toMatchObject({ values: {}, next: [], tasks: [] });
  });

  test("runs.wait answers the final values, which are the thread's state", async () => {
    const { client, server } = await start();
    const { thread_id } = await client.threads.create();
    expect(await client.runs.wait(thread_id, "two", { input: { topic: "tea" } })).toEqual(done);
    const state = await client.threads.getState(thread_id);
    expect(state).toMatchObject({ values: done, next: [], tasks: [] });
    expect(state.metadata).toMatchObject({ step: 2, source: "loop", graph_id: "two", thread_id });
    expect(await client.threads.get(thread_id)).toMatchObject({ status: "idle", values: done });
    expect(server.complaints).toEqual([]);
  });

  test("runs.stream gives metadata, then updates and values as they come", async () => {
    const { client } = await start();
    const { thread_id } = await client.threads.create();
    const events: unknown[] = [];
    const streamMode: ("values" | "updates")[] = ["values", "updates"];
    for await (const { event, data } of client.runs.stream(thread_id, "two", {
      input: { topic: "tea" },
      streamMode,
    })) {
      events.push([event, data]);
    }
    expect(events).toEqual([
      ["metadata", { run_id: expect.stringMatching(UUID), attempt: 1, thread_id }],
      ["values", { topic: "tea", log: [] }],
      ["updates", { first: { log: ["first about tea"] } }],
      ["values", { topic: "tea", log: ["first about tea"] }],
      ["updates", { second: { log: ["second after 1"] } }],
      ["values", done],
    ]);
  });

  test("runs.stream gives the tokens of a model as messages", async () => {
    const { client } = await start();
    const { thread_id } = await client.threads.create();
    let text = "";
    const input = { messages: [{ role: "user", content: "hello" }] };
    const config = { configurable: { delay_ms: 0 } };
    for await (const part of client.runs.stream(thread_id, "agent", {
      input,
      config,
      streamMode: "messages-tuple",
    })) {
      if (part.event !== "messages") continue;
      const [chunk, about] = part.data as unknown as [
        { content: string; type: string },
        { langgraph_node: string },
      ];
      expect(about.langgraph_node).toBeTypeOf("string");
      text += chunk.content;
    }
    const { values } = await client.threads.getState<{ messages: { type: string; content: string }[] }>(
      thread_id,
    );
    expect(values.messages.map(({ type }) => type)).toEqual(["human", "ai"]);
    expect(text).toBe(values.messages[1]?.content);
    expect(text).not.toBe("");
  });

  test("runs.create answers at once; join waits for the end, get and list tell of it", async () => {
    const { held, open, running } = gate();
    const { client } = await start({ graphs: { held } });
    const { thread_id } = await client.threads.create();
    const run = await client.runs.create(thread_id, "held", { input: { name: "a" } });
    expect(run).toMatchObject({ status: "pending", thread_id, multitask_strategy: "reject" });
    await running;
    expect(await client.runs.get(thread_id, run.run_id)).toMatchObject({ status: "running" });
    expect(await client.threads.get(thread_id)).toMatchObject({ status: "busy" });
    const joined = client.runs.join(thread_id, run.run_id);
    open();
    expect(await joined).toEqual({ name: "a", log: ["held a"] });
    expect(await client.runs.get(thread_id, run.run_id)).toMatchObject({ status: "success" });
    const runs = await client.runs.list(thread_id);
    expect(runs.map(({ run_id }) => run_id)).toEqual([run.run_id]);
  });

  test("an interrupt pauses the run; a resume brings the human's answer back into the node", async () => {
    const { client } = await start();
    const { thread_id } = await client.threads.create();
    const paused = await client.runs.wait(thread_id, "approval", { input: { topic: "tea" } });
    const [question] = (paused as { __interrupt__: { value: unknown; id: string }[] }).__interrupt__;
    expect(question).toMatchObject({
      value: { draft: "Draft 1: tea" },
      id: expect.stringMatching(/^[0-9a-f]{32}$/),
      resumable: true,
      when: "during",
      ns: [expect.stringMatching(/^review:[0-9a-f-]{36}$/)],
    });
    expect(await client.threads.get(thread_id)).toMatchObject({ status: "interrupted" });
    const state = await client.threads.getState(thread_id);
    expect(state.next).toEqual(["review"]);
    expect(state.tasks).toMatchObject([{ name: "review", interrupts: [{ id: question?.id }] }]);

    const resumed = await client.runs.wait(thread_id, "approval", { command: { resume: { ok: true } } });
    expect(resumed).toMatchObject({ sent: true, log: ["wrote about tea", "approved", "sent"] });
    expect(resumed).not.toHaveProperty("__interrupt__");
    expect(await client.threads.get(thread_id)).toMatchObject({ status: "idle", interrupts: {} });
  });

  test("reject: a second run is refused with 409, and the first one completes", async () => {
    const { held, open, running } = gate();
    const { client } = await start({ graphs: { held } });
    const { thread_id } = await client.threads.create();
    const first = await client.runs.create(thread_id, "held", { input: { name: "first" } });
    await running;
    const second = client.runs.create(thread_id, "held", { multitaskStrategy: "reject" });
    await expect(second).rejects.toMatchObject({ status: 409 });
    open();
    expect(await client.runs.join(thread_id, first.run_id)).toEqual({ name: "first", log: ["held first"] });
    expect(await client.runs.list(thread_id)).toHaveLength(1);
  });

  test("unknown things are 404, what does not validate 422", async () => {
    const { client } = await start();
    const nowhere = "00000000-0000-4000-8000-000000000000";
    await expect(client.threads.get(nowhere)).rejects.toMatchObject({ status: 404 });
    await expect(client.runs.wait(nowhere, "two", {})).rejects.toMatchObject({ status: 404 });
    const { thread_id } = await client.threads.create();
    await expect(client.runs.create(thread_id, "no such graph", {})).rejects.toMatchObject({ status: 404 });
    const odd = { multitaskStrategy: "whatever" as "reject" };
    await expect(client.runs.create(thread_id, "two", odd)).rejects.toMatchObject({ status: 422 });
  });

  test("what was acknowledged is there after a restart on the same directory", async () => {
    const data = await directory();
    const one = await start({ data });
    const { thread_id } = await one.client.threads.create();
    const paused = await one.client.runs.wait(thread_id, "approval", { input: { topic: "tea" } });
    expect(paused).toHaveProperty("__interrupt__");
    await one.server.close();

    const { client } = await start({ data });
    expect(await client.threads.get(thread_id)).toMatchObject({ status: "interrupted" });
    const resumed = await client.runs.wait(thread_id, "approval", { command: { resume: { ok: true } } });
    expect(resumed).toMatchObject({ sent: true, log: ["wrote about tea", "approved", "sent"] });
  });
});

test("two servers in one process know nothing of each other", async () => {
  const [one, two] = await Promise.all([serve(), serve()]);
  const connect = lines[0]?.[1] as (url: string) => Client;
  const { thread_id } = await connect(one.url).threads.create();
  await expect(connect(two.url).threads.get(thread_id)).rejects.toMatchObject({ status: 404 });
  await one.close();
  expect(await connect(two.url).threads.create()).toMatchObject({ status: "idle" });
});
