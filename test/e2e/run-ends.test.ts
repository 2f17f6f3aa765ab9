import { describe, expect, test } from "vitest";
import { graph, list } from "../../src/index.ts";
import { type Client, lines } from "./support/clients.ts";
import { gated } from "./support/latches.ts";
import { serve } from "./support/server.ts";
import { get, newThread, NOBODY, post, postJson } from "./support/wire.ts";

const asks = graph({
  state: { log: list<string>() },
  nodes: {
    one: async () => ({ log: ["one"] }),
    ask: async (_, ctx) => ({ log: [`heard ${String(await ctx.interrupt("?"))}`] }),
  },
  edges: { start: "one", one: "ask" },
});
const step = graph({
  state: { log: list<string>() },
  nodes: { work: async (_, ctx) => ({ log: [String(ctx.config["configurable"] && ctx.runId.length)] }) },
  edges: { start: "work" },
});

interface Shown {
  readonly status: string;
  readonly cancel_reason?: string;
}

const start = async (connect: (url: string) => Client) => {
  const held = gated();
  const { url } = await serve({ graphs: { held: held.held, asks, step } });
  const client = connect(url);
  const { thread_id } = await client.threads.create();
  const create = (name: string, more: object = {}) =>
    client.runs.create(thread_id, "held", { input: { name }, multitaskStrategy: "enqueue", ...more });
  const show = async (run: { run_id: string }) =>
    (await client.runs.get(thread_id, run.run_id)) as unknown as Shown;
  const status = async (run: { run_id: string }) => (await show(run)).status;
  return { ...held, url, client, thread_id, create, show, status };
};

describe.each(lines)("the end of runs over %s", (_, connect) => {
  test("a reason is kept with the run that it ends, whether it runs or waits", async () => {
    const { url, thread_id, create, waits, show } = await start(connect);
    const a = await create("a");
    await waits("a");
    const b = await create("b");
    const end = (run: string, reason: string) =>
      post(`${url}/threads/${thread_id}/runs/${run}/cancel?wait=1&reason=${encodeURIComponent(reason)}`);
    expect((await end(b.run_id, "not needed")).status).toBe(204);
    expect((await end(a.run_id, "taken")).status).toBe(204);
    expect(await show(a)).toMatchObject({ status: "interrupted" });
    expect((await show(a)).cancel_reason).toMatch(/^taken:/);
    expect(await show(b)).toMatchObject({ status: "interrupted", cancel_reason: "not needed" });
  });

  test("all that is in flight on a thread ends at once, without any run's id", async () => {
    const { url, client, thread_id, create, waits, status } = await start(connect);
    const runs = [
      await create("a"),
      await create("b"),
      await create("c"),
      await create("d", { afterSeconds: 9 }),
    ];
    await waits("a");
    const cancel = (query: string) => post(`${url}/threads/${thread_id}/runs/cancel?wait=1${query}`);
    expect((await cancel("&status=pending")).status).toBe(204);
    expect(await Promise.all(runs.map(status))).toEqual(["running", ...Array(3).fill("interrupted")]);
    expect((await cancel("")).status).toBe(204);
    expect(await Promise.all(runs.map(status))).toEqual(Array(4).fill("interrupted"));
    expect(await client.threads.get(thread_id)).toMatchObject({ status: "idle" });
    // An idle thread has no run to end.
    expect((await cancel("")).status).toBe(204);
    expect((await post(`${url}/threads/${NOBODY}/runs/cancel`)).status).toBe(404);
  });

  test("named runs end together, or none where one is not there", async () => {
    const { url, thread_id, create, waits, status } = await start(connect);
    const [a, b, c] = [await create("a"), await create("b"), await create("c")];
    await waits("a");
    const cancel = (...run_ids: string[]) => post(`${url}/runs/cancel`, { thread_id, run_ids });
    expect((await cancel(a.run_id, NOBODY)).status).toBe(404);
    expect(await status(a)).toBe("running");
    expect((await cancel(a.run_id, c.run_id)).status).toBe(204);
    expect(await status(c)).toBe("interrupted");
    await waits("b");
    expect(await Promise.all([a, b].map(status))).toEqual(["interrupted", "running"]);
  });

  test("a sweep by status meets runs of every thread, and those without one", async () => {
    const { url, client, thread_id, create, waits, status } = await start(connect);
    const a = await create("a");
    const b = await create("b");
    await waits("a");
    const other = await client.threads.create();
    const c = await client.runs.create(other.thread_id, "held", { input: { name: "c" } });
    const alone = await client.runs.create(null, "held", { input: { name: "alone" } });
    await Promise.all([waits("c"), waits("alone")]);
    expect((await post(`${url}/runs/cancel?action=rollback`, { status: "pending" })).status).toBe(204);
    expect((await get(`${url}/threads/${thread_id}/runs/${b.run_id}`)).status).toBe(404);
    expect(await status(a)).toBe("running");
    expect((await post(`${url}/runs/cancel`, { status: "all" })).status).toBe(204);
    expect(await client.runs.join(thread_id, a.run_id)).toEqual({ name: "a", log: ["a began"] });
    await client.runs.join(other.thread_id, c.run_id);
    expect(await status(a)).toBe("interrupted");
    expect(await client.runs.get(other.thread_id, c.run_id)).toMatchObject({ status: "interrupted" });
    // Cancelled at the same time, it may end after the others; its thread is deleted at its end.
    const gone = async () => (await get(`${url}/threads/${alone.thread_id}/runs/${alone.run_id}`)).status;
    await expect.poll(gone).toBe(404);
    expect((await post(`${url}/runs/cancel`, { status: "all" })).status).toBe(204);
  });

  test("a run that has ended is deleted with what it did: the thread stands as before", async () => {
    const { url, client, thread_id } = await start(connect);
    const first = await client.runs.create(thread_id, "step", { input: {} });
    await client.runs.join(thread_id, first.run_id);
    const before = await client.threads.getState(thread_id);
    const second = await client.runs.create(thread_id, "asks", { input: {} });
    await client.runs.join(thread_id, second.run_id);
    expect(await client.threads.get(thread_id)).toMatchObject({ status: "interrupted" });
    await client.runs.delete(thread_id, second.run_id);
    expect(await client.threads.get(thread_id)).toMatchObject({ status: "idle", interrupts: {} });
    expect(await client.threads.getState(thread_id)).toEqual(before);
    expect(await client.runs.list(thread_id)).toMatchObject([{ run_id: first.run_id }]);
    await expect(client.runs.delete(thread_id, second.run_id)).rejects.toMatchObject({ status: 404 });
    const events = await get(`${url}/threads/${thread_id}/runs/${second.run_id}/stream`);
    expect(events.status).toBe(404);
    // The thread continues from there.
    expect(await client.runs.wait(thread_id, "step", { input: {} })).toMatchObject({
      log: expect.objectContaining({ length: 2 }) as unknown,
    });
  });

  test("deleted is also a run on which others were built: their states are whole", async () => {
    const { client, thread_id } = await start(connect);
    const runs: string[] = [];
    for (let i = 0; i < 3; i++) {
      const { run_id } = await client.runs.create(thread_id, "step", { input: {} });
      await client.runs.join(thread_id, run_id);
      runs.push(run_id);
    }
    const { values } = await client.threads.getState(thread_id);
    await client.runs.delete(thread_id, runs[1] as string);
    expect((await client.threads.getState(thread_id)).values).toEqual(values);
    expect(await client.runs.list(thread_id)).toMatchObject([{ run_id: runs[2] }, { run_id: runs[0] }]);
    expect(await client.runs.wait(thread_id, "step", { input: {} })).toMatchObject({
      log: expect.objectContaining({ length: 4 }) as unknown,
    });
  });

  test("an answer that is deleted is taken back: the question waits again", async () => {
    const { client, thread_id } = await start(connect);
    await client.runs.wait(thread_id, "asks", { input: {} });
    const asked = await client.threads.getState(thread_id);
    await client.runs.wait(thread_id, "asks", { command: { resume: "yes" } });
    const [answer] = await client.runs.list(thread_id);
    await client.runs.delete(thread_id, answer?.run_id ?? "");
    expect(await client.threads.get(thread_id)).toMatchObject({ status: "interrupted" });
    expect(await client.threads.getState(thread_id)).toEqual(asked);
    expect(await client.runs.wait(thread_id, "asks", { command: { resume: "no" } })).toEqual({
      log: ["one", "heard no"],
    });
  });

  test("not while it is in flight, nor while another one is", async () => {
    const { client, thread_id, create, waits, open } = await start(connect);
    const a = await create("a");
    const b = await create("b");
    const late = await create("late", { afterSeconds: 60 });
    await waits("a");
    for (const run of [a, b, late]) {
      await expect(client.runs.delete(thread_id, run.run_id)).rejects.toMatchObject({ status: 409 });
    }
    open("a");
    await waits("b");
    await expect(client.runs.delete(thread_id, a.run_id)).rejects.toMatchObject({ status: 409 });
    open("b");
    await client.runs.join(thread_id, b.run_id);
    await client.runs.delete(thread_id, a.run_id);
    expect(await client.runs.list(thread_id)).toMatchObject([{ run_id: late.run_id }, { run_id: b.run_id }]);
  });

  test("a run whose time is up is stopped: timeout, and its stream ends with the error", async () => {
    const { url, client, thread_id, status } = await start(connect);
    const body = { assistant_id: "held", input: { name: "long" }, timeout_seconds: 0.5 };
    const stream = await (await post(`${url}/threads/${thread_id}/runs/stream`, body)).text();
    expect(stream).toMatch(
      /event: error\ndata: \{"error":"RunTimeoutError","message":"Run .* took longer than 0.5 s"\}\nid: \d+\n\n$/,
    );
    const [run] = await client.runs.list(thread_id);
    expect(await status(run as { run_id: string })).toBe("timeout");
    expect(await client.threads.get(thread_id)).toMatchObject({
      status: "error",
      values: { log: ["long began"] },
    });
    const outcome = await client.runs.join(thread_id, run?.run_id ?? "");
    expect(outcome).toMatchObject({ __error__: { error: "RunTimeoutError" } });
    expect(await client.runs.list(thread_id, { status: "timeout" })).toHaveLength(1);
    // The state from before the run is not lost.
    expect((await client.threads.getState(thread_id)).next).toEqual(["hold"]);
  });

  test("a batch of runs, each without a thread of its own", async () => {
    const { url, client, waits } = await start(connect);
    const payload = (name: string) => ({
      assistantId: "held",
      input: { name },
      multitaskStrategy: "enqueue" as const,
    });
    const runs = await client.runs.createBatch([payload("x"), payload("y")]);
    await Promise.all([waits("x"), waits("y")]);
    expect(runs).toMatchObject([
      { status: "pending", multitask_strategy: "enqueue", kwargs: { input: { name: "x" } } },
      { status: "pending", kwargs: { input: { name: "y" } } },
    ]);
    expect(new Set(runs.map(({ thread_id }) => thread_id)).size).toBe(2);
    const refused = await post(`${url}/runs/batch`, [{ assistant_id: "held" }, { assistant_id: "nobody" }]);
    expect(refused.status).toBe(404);
    expect(await refused.json()).toMatchObject({ detail: expect.stringContaining("[1]") as unknown });
  });

  test("runs are listed by their metadata too", async () => {
    const { url, client, thread_id } = await start(connect);
    for (const n of [1, 2])
      await client.runs.wait(thread_id, "step", { input: {}, metadata: { job: { n } } });
    const by = async (metadata: object, more = "") =>
      postJsonList(
        `${url}/threads/${thread_id}/runs?metadata=${encodeURIComponent(JSON.stringify(metadata))}${more}`,
      );
    expect(await by({ job: { n: 2 } })).toMatchObject([{ metadata: { job: { n: 2 } } }]);
    expect(await by({ graph_id: "step" })).toHaveLength(2);
    expect(await by({ graph_id: "step" }, "&status=error")).toEqual([]);
    expect(await by({ graph_id: "step" }, "&limit=1&offset=1&select=metadata")).toEqual([
      { metadata: expect.objectContaining({ job: { n: 1 } }) as unknown },
    ]);
  });
});

const postJsonList = async (url: string) => (await get(url)).json() as Promise<object[]>;

test("the server's own limit of time holds where a run has none, and counts what was lost in a crash", async () => {
  const { held } = gated();
  const { url } = await serve({ graphs: { held }, limits: { timeout: 50 } });
  const thread = await newThread(url);
  const run = { assistant_id: "held", input: { name: "a" } };
  expect(await postJson(`${url}/threads/${thread}/runs/wait`, run)).toMatchObject({
    __error__: { error: "RunTimeoutError" },
  });
});
