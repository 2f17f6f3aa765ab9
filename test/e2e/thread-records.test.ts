import { describe, expect, test } from "vitest";
import { graph, list, value } from "../../src/index.ts";
import { SimulatedClock } from "../simulation/clock.ts";
import { type Client, lines } from "./support/clients.ts";
import { gated } from "./support/latches.ts";
import { receiver } from "./support/receiver.ts";
import { directory, serve } from "./support/server.ts";
import { dial } from "./support/sockets.ts";
import { aUuid, get, NOBODY, post, postJson } from "./support/wire.ts";

const notes = graph({
  state: { log: list<string>(), topic: value("none"), about: value<Record<string, unknown>>({}) },
  nodes: { note: async ({ topic }) => ({ log: [`about ${topic}`] }) },
  edges: { start: "note" },
});

const asks = graph({
  state: { log: list<string>() },
  nodes: { ask: async (_, ctx) => ({ log: [`said ${String(await ctx.interrupt("well?"))}`] }) },
  edges: { start: "ask" },
});

interface Rows {
  readonly count: number;
  readonly bytes: number;
}
interface Stored {
  readonly total_bytes: number;
  readonly checkpoints: Rows;
  readonly channel_values: Rows & {
    readonly by_channel: { readonly [name: string]: { readonly versions: number; readonly bytes: number } };
  };
  readonly pending_writes: Rows;
  readonly runs: Rows;
  readonly events: Rows;
}

const fails = graph({
  state: { log: list<string>() },
  nodes: {
    bad: async () => {
      throw new TypeError("kaboom");
    },
  },
  edges: { start: "bad" },
});

const idsOf = (threads: readonly { thread_id: string }[]) => threads.map(({ thread_id }) => thread_id);
const gone = { status: 404 };

describe.each(lines)("threads as records over %s", (_, connect) => {
  const start = async () => {
    const held = gated();
    const { url } = await serve({ graphs: { notes, asks, fails, held: held.held } });
    return { client: connect(url), url, ...held };
  };

  /** Threads one after the other, so that their times differ. */
  async function threads(client: Client, count: number, metadata: (n: number) => Record<string, unknown>) {
    const made: string[] = [];
    for (let n = 0; n < count; n++) {
      made.push((await client.threads.create({ metadata: metadata(n) })).thread_id);
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    return made;
  }

  test("threads are listed the newest first, in pages of ten", async () => {
    const { client, url } = await start();
    const made = (await threads(client, 12, (n) => ({ n }))).toReversed();
    expect(idsOf(await client.threads.search())).toEqual(made.slice(0, 10));
    expect(idsOf(await client.threads.search({ limit: 5, offset: 9 }))).toEqual(made.slice(9));
    expect(idsOf(await client.threads.search({ sortBy: "created_at", sortOrder: "asc", limit: 2 }))).toEqual(
      made.toReversed().slice(0, 2),
    );
    expect(idsOf(await client.threads.search({ sortBy: "thread_id", limit: 20 }))).toEqual(
      made.toSorted().toReversed(),
    );
    expect(await client.threads.search({ offset: 12 })).toEqual([]);
    const paged = async (body: unknown) => {
      const { headers } = await post(`${url}/threads/search`, body);
      return [headers.get("x-pagination-total"), headers.get("x-pagination-next")];
    };
    expect(await paged({})).toEqual(["12", "10"]);
    expect(await paged({ offset: 10 })).toEqual(["12", null]);
    expect(await paged({ limit: 12 })).toEqual(["12", null]);
    expect(await paged({ limit: 2, offset: 4, metadata: { n: 3 } })).toEqual(["1", null]);
  });

  test("a search shows whole threads, or the fields and the parts that are asked for", async () => {
    const { client, url } = await start();
    const { thread_id } = await client.threads.create({ metadata: { title: "tea" } });
    await client.runs.wait(thread_id, "notes", { input: { topic: "tea", about: { cups: [1, 2, 3] } } });
    expect(await client.threads.search()).toEqual([await client.threads.get(thread_id)]);
    const select: ("thread_id" | "metadata")[] = ["thread_id", "metadata"];
    const [chosen] = await client.threads.search({ select });
    expect(Object.keys(chosen ?? {})).toEqual(select);
    const extract = {
      last: "values.about.cups[-1]",
      title: "metadata.title",
      none: "values.nothing[3].there",
    };
    // An older client does not pass it on.
    expect(await postJson(`${url}/threads/search`, { select: ["thread_id"], extract })).toEqual([
      { thread_id, extracted: { last: 3, title: "tea", none: null } },
    ]);
  });

  test("threads are found by metadata, values, status and ids, and counted by them", async () => {
    const { client, waits, open } = await start();
    const [one, two, three, four] = (await threads(client, 4, (n) => ({
      user: n % 2 === 0 ? "ann" : "bob",
      tags: ["x", `t${n}`],
      deep: { er: { n } },
    }))) as [string, string, string, string];
    const found = async (query: Parameters<typeof client.threads.search>[0]) => {
      const ids = idsOf(await client.threads.search(query));
      if (query?.ids === undefined && query?.limit === undefined)
        expect(await client.threads.count(query as object)).toBe(ids.length);
      return ids;
    };
    await client.runs.wait(one, "notes", { input: { topic: "tea", about: { cups: [1, 2] } } });
    await client.runs.wait(two, "asks", { input: {} });
    await client.runs.wait(three, "fails", { input: {}, raiseError: false });
    await client.runs.create(four, "held", { input: { name: "a" } });
    await waits("a");
    expect(await found({ metadata: { user: "ann" } })).toEqual([three, one]);
    expect(await found({ metadata: { deep: { er: { n: 1 } } } })).toEqual([two]);
    expect(await found({ metadata: { tags: ["t3"] } })).toEqual([four]);
    expect(await found({ metadata: { graph_id: "notes" } })).toEqual([one]);
    expect(await found({ values: { topic: "tea" } })).toEqual([one]);
    expect(await found({ values: { about: { cups: [2] } } })).toEqual([one]);
    expect(await found({ values: { topic: "tea" }, metadata: { user: "bob" } })).toEqual([]);
    expect(await found({ status: "idle" })).toEqual([one]);
    expect(await found({ status: "interrupted" })).toEqual([two]);
    expect(await found({ status: "error" })).toEqual([three]);
    expect(await found({ status: "busy" })).toEqual([four]);
    expect(await found({ ids: [two, NOBODY, one.toUpperCase()] })).toEqual([two, one]);
    expect(await found({ sortBy: "updated_at" })).toEqual([four, three, two, one]);
    expect(await found({ sortBy: "status", sortOrder: "asc" })).toEqual([four, three, one, two]);
    await client.runs.wait(two, "asks", { command: { resume: "yes" } });
    expect(await found({ status: "interrupted" })).toEqual([]);
    expect(await found({ status: "idle" })).toEqual([two, one]);
    open("a");
    const [run] = await client.runs.list(four);
    await client.runs.join(four, run?.run_id ?? "");
    expect(await found({ sortBy: "updated_at", limit: 1 })).toEqual([four]);
    expect(await found({ status: "busy" })).toEqual([]);
    expect(await client.threads.count()).toBe(4);
  });

  test("an update merges the metadata, also while a run is in progress", async () => {
    const { client, url, waits, open } = await start();
    const { thread_id, updated_at } = await client.threads.create({ metadata: { a: 1, deep: { x: 1 } } });
    const run = await client.runs.create(thread_id, "held", { input: { name: "a" } });
    await waits("a");
    const changed = await client.threads.update(thread_id, { metadata: { b: 2, deep: { y: 1 } } });
    expect(changed).toMatchObject({ thread_id, metadata: { a: 1, b: 2, deep: { y: 1 } }, status: "busy" });
    expect(changed.updated_at > updated_at).toBe(true);
    expect(idsOf(await client.threads.search({ metadata: { b: 2 } }))).toEqual([thread_id]);
    open("a");
    await client.runs.join(thread_id, run.run_id);
    expect(await client.threads.get(thread_id)).toMatchObject({
      metadata: { a: 1, b: 2, deep: { y: 1 }, graph_id: "held" },
      status: "idle",
      values: { log: ["a began", "a ended"] },
    });
    const minimal = await fetch(`${url}/threads/${thread_id}`, {
      method: "PATCH",
      headers: { "content-type": "application/json", prefer: "return=minimal" },
      body: JSON.stringify({ metadata: { b: 3 } }),
    });
    expect([minimal.status, await minimal.text()]).toEqual([204, ""]);
    expect((await client.threads.get(thread_id)).metadata).toMatchObject({ a: 1, b: 3 });
    await expect(client.threads.update(NOBODY, { metadata: {} })).rejects.toMatchObject(gone);
  });

  test("a deleted thread is gone with its runs, its state and its history, and its id is free", async () => {
    const { client, url } = await start();
    const { thread_id } = await client.threads.create({ metadata: { user: "ann" } });
    const { run_id } = await client.runs.create(thread_id, "notes", { input: { topic: "tea" } });
    await client.runs.join(thread_id, run_id);
    await client.threads.delete(thread_id);
    await expect(client.threads.get(thread_id)).rejects.toMatchObject(gone);
    await expect(client.threads.getState(thread_id)).rejects.toMatchObject(gone);
    await expect(client.runs.get(thread_id, run_id)).rejects.toMatchObject(gone);
    await expect(client.runs.list(thread_id)).rejects.toMatchObject(gone);
    await expect(client.threads.delete(thread_id)).rejects.toMatchObject(gone);
    expect((await get(`${url}/threads/${thread_id}/runs/${run_id}/stream`)).status).toBe(404);
    expect(await client.threads.search({ metadata: { user: "ann" } })).toEqual([]);
    expect(await client.threads.count()).toBe(0);
    const again = await client.threads.create({ threadId: thread_id });
    expect(again).toMatchObject({ thread_id, values: null, metadata: {} });
    expect(await client.runs.list(thread_id)).toEqual([]);
    expect(await client.runs.wait(thread_id, "notes", { input: {} })).toMatchObject({ log: ["about none"] });
  });

  test("a thread is deleted from under its runs: they are stopped, and who watches is told", async () => {
    const hooks = await receiver();
    const held = gated();
    const { url } = await serve({
      graphs: { held: held.held },
      webhooks: { allow_internal: true },
    });
    const client = connect(url);
    const { thread_id } = await client.threads.create();
    const path = `${url}/threads/${thread_id}`;
    const mirror = await dial(`${path}/stream`);
    const whole = await get(`${path}/stream`);
    const stream = await post(`${path}/runs/stream`, { assistant_id: "held", input: { name: "a" } });
    const read = stream.text();
    const queued = await client.runs.create(thread_id, "held", {
      input: { name: "b" },
      multitaskStrategy: "enqueue",
      webhook: hooks.url,
    });
    await held.waits("a");
    // It may be told before anything else here is.
    const joined = client.runs
      .join(thread_id, queued.run_id)
      .catch((cause: unknown) => expect(cause).toMatchObject(gone));
    await client.threads.delete(thread_id);
    await expect(client.threads.get(thread_id)).rejects.toMatchObject(gone);
    for (const text of [await read, await whole.text()]) {
      expect(text).toContain("event: metadata\n");
      expect(text).toMatch(/event: error\ndata: .*The thread was deleted"\}\n\n$/);
    }
    expect((await mirror.closed).code).toBe(4404);
    await joined;
    const [told] = await hooks.until(1);
    expect(told?.json).toMatchObject({ run_id: queued.run_id, status: "interrupted" });
    await expect(client.runs.wait(thread_id, "held", { input: { name: "c" } })).rejects.toMatchObject(gone);
  });

  test("a copy has the state and the history, and lives on its own", async () => {
    const { client } = await start();
    const { thread_id } = await client.threads.create({ metadata: { user: "ann" } });
    await client.runs.wait(thread_id, "notes", { input: { topic: "tea" } });
    await client.runs.wait(thread_id, "notes", { input: { topic: "cake" } });
    const copy = await client.threads.copy(thread_id);
    expect(copy).toMatchObject({
      thread_id: aUuid,
      status: "idle",
      config: {},
      metadata: { user: "ann", thread_id: copy.thread_id },
      values: { log: ["about tea", "about cake"] },
    });
    expect(copy.thread_id).not.toBe(thread_id);
    const [state, origin] = [
      await client.threads.getState(copy.thread_id),
      await client.threads.getState(thread_id),
    ];
    expect(state.checkpoint).toEqual({ ...origin.checkpoint, thread_id: copy.thread_id });
    expect(state.metadata).toMatchObject({ thread_id: copy.thread_id });
    expect(await client.runs.list(copy.thread_id)).toEqual([]);
    await client.runs.wait(copy.thread_id, "notes", { input: { topic: "pie" } });
    await client.threads.delete(thread_id);
    expect((await client.threads.getState(copy.thread_id)).values).toMatchObject({
      log: ["about tea", "about cake", "about pie"],
    });
    await expect(client.threads.copy(NOBODY)).rejects.toMatchObject(gone);
  });

  test("a thread tells how many bytes it has stored, channel by channel", async () => {
    const { client, url } = await start();
    const { thread_id } = await client.threads.create();
    const read = async () => (await (await get(`${url}/threads/${thread_id}/storage`)).json()) as Stored;
    const nothing = { count: 0, bytes: 0 };
    expect(await read()).toEqual({
      thread_id,
      total_bytes: 0,
      checkpoints: nothing,
      channel_values: { ...nothing, by_channel: {} },
      pending_writes: nothing,
      runs: nothing,
      events: nothing,
      thread: { count: 2, bytes: expect.any(Number) },
    });
    const topic = "t".repeat(3_000);
    await client.runs.wait(thread_id, "notes", { input: { topic } });
    const { total_bytes, checkpoints, channel_values, pending_writes, runs, events } = await read();
    expect(checkpoints.count).toBe((await client.threads.getHistory(thread_id)).length);
    expect(channel_values.by_channel["topic"]?.bytes).toBeGreaterThan(3_000);
    expect(channel_values.by_channel["log"]?.bytes).toBeGreaterThan(3_000);
    const values = Object.values(channel_values.by_channel);
    expect(channel_values.bytes).toBe(values.reduce((sum, { bytes }) => sum + bytes, 0));
    expect(channel_values.count).toBe(values.reduce((sum, { versions }) => sum + versions, 0));
    expect(total_bytes).toBe(checkpoints.bytes + channel_values.bytes + pending_writes.bytes);
    expect(runs.count).toBeGreaterThan(0);
    expect(events.bytes).toBeGreaterThan(0);
    const answer = await get(`${url}/threads/${NOBODY}/storage`);
    expect(answer.status).toBe(404);
    expect(await answer.json()).toMatchObject({ code: "thread.not_found" });
  });

  test("a copy of a thread that waits for an answer can be given another one", async () => {
    const { client } = await start();
    const { thread_id } = await client.threads.create();
    await client.runs.wait(thread_id, "asks", { input: {} });
    const copy = await client.threads.copy(thread_id);
    expect(copy.status).toBe("interrupted");
    expect(await client.runs.wait(copy.thread_id, "asks", { command: { resume: "no" } })).toMatchObject({
      log: ["said no"],
    });
    expect(await client.runs.wait(thread_id, "asks", { command: { resume: "yes" } })).toMatchObject({
      log: ["said yes"],
    });
  });

  test("pruning deletes threads, or all but their latest checkpoints", async () => {
    const { client, url, waits, open } = await start();
    const prune = (thread_ids: readonly string[], strategy?: string) =>
      postJson(`${url}/threads/prune`, { thread_ids, strategy });
    const [one, two, busy] = (await threads(client, 3, () => ({}))) as [string, string, string];
    for (const thread of [one, two]) {
      await client.runs.wait(thread, "notes", { input: { topic: "tea" } });
      await client.runs.wait(thread, "notes", { input: { topic: "cake" } });
    }
    const run = await client.runs.create(busy, "held", { input: { name: "a" } });
    await waits("a");
    const before = await client.threads.getState(one);
    expect(await prune([one, NOBODY, busy, one], "keep_latest")).toEqual({ pruned_count: 1 });
    expect(await client.threads.getState(one)).toMatchObject({
      values: before.values,
      checkpoint: before.checkpoint,
      parent_checkpoint: null,
    });
    await client.runs.wait(one, "notes", { input: { topic: "pie" } });
    expect((await client.threads.getState(one)).values).toMatchObject({
      log: ["about tea", "about cake", "about pie"],
    });
    expect(await prune([one, two, NOBODY])).toEqual({ pruned_count: 2 });
    await expect(client.threads.get(two)).rejects.toMatchObject(gone);
    open("a");
    await client.runs.join(busy, run.run_id);
    expect((await client.threads.get(busy)).values).toMatchObject({ log: ["a began", "a ended"] });
  });

  test("a thread tells how long it is kept, to who asks", async () => {
    const { client, url } = await start();
    const { thread_id } = await client.threads.create({ ttl: 60 } as object);
    const thread = await client.threads.get(thread_id);
    expect(thread).not.toHaveProperty("ttl");
    const asked = (await (await get(`${url}/threads/${thread_id}?include=ttl`)).json()) as {
      ttl: { expires_at: string };
    };
    expect(asked.ttl).toMatchObject({ strategy: "delete", ttl: 60, ttl_minutes: 60 });
    expect(Date.parse(asked.ttl.expires_at) - Date.parse(thread.updated_at)).toBe(3_600_000);
  });
});

describe("threads that are kept for a time", () => {
  test("go when it is up, unless they are used; after a restart too", async () => {
    const data = await directory();
    const clock = new SimulatedClock();
    const options = {
      data,
      clock,
      graphs: { notes },
      threadTtl: { lifetime: { strategy: "delete", minutes: 10 }, interval: 20 },
    } as const;
    const first = await serve(options);
    const client = lines[0]?.[1](first.url) as Client;
    const [idle, used] = [await client.threads.create(), await client.threads.create()];
    const forGood = await client.threads.create({ ttl: 10_000 });
    clock.advance(6 * 60_000);
    await client.runs.wait(used.thread_id, "notes", { input: {} });
    clock.advance(6 * 60_000);
    await expect
      .poll(() => client.threads.get(idle.thread_id).catch((cause: { status: number }) => cause.status))
      .toBe(404);
    expect((await client.threads.get(used.thread_id)).values).toMatchObject({ log: ["about none"] });
    await first.close(0);
    clock.advance(6 * 60_000);
    const second = await serve(options);
    const again = lines[0]?.[1](second.url) as Client;
    await expect
      .poll(() => again.threads.get(used.thread_id).catch((cause: { status: number }) => cause.status))
      .toBe(404);
    expect((await again.threads.get(forGood.thread_id)).thread_id).toBe(forGood.thread_id);
    expect(second.complaints).toEqual([]);
  });
});
