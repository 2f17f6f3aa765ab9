import { describe, expect, test } from "vitest";
import { lines } from "./support/clients.ts";
import { gated } from "./support/latches.ts";
import { directory, serve } from "./support/server.ts";

const slots = (all: number, more: { perTenant?: number; perGraph?: Record<string, number> } = {}) => ({
  concurrent: { all, perTenant: Infinity, perGraph: {}, ...more },
});

describe.each(lines)("runs that wait for a slot over %s", (_, connect) => {
  async function start(limits: object, options: object = {}) {
    const held = gated();
    const { url } = await serve({ graphs: { held: held.held }, limits, ...options });
    const client = connect(url);
    const create = async (name: string, thread?: string, strategy?: "enqueue" | "interrupt" | "rollback") => {
      const thread_id = thread ?? (await client.threads.create()).thread_id;
      const run = await client.runs.create(thread_id, "held", {
        input: { name },
        ...(strategy && { multitaskStrategy: strategy }),
      });
      return { thread_id, run_id: run.run_id };
    };
    const get = ({ thread_id, run_id }: { thread_id: string; run_id: string }) =>
      client.runs.get(thread_id, run_id) as Promise<{ status: string; queue_position?: number }>;
    const join = async ({ thread_id, run_id }: { thread_id: string; run_id: string }) =>
      (await client.runs.join(thread_id, run_id)) as unknown as { log: string[] };
    const thread = async ({ thread_id }: { thread_id: string }) =>
      (await client.threads.get(thread_id)).status;
    return { ...held, client, create, get, join, thread };
  }

  test("start in the order they came, and tell their place until then", async () => {
    const { create, get, join, open, waits, thread } = await start(slots(1));
    const a = await create("a");
    await waits("a");
    const b = await create("b");
    const c = await create("c");
    expect(await get(a)).not.toHaveProperty("queue_position");
    expect(await get(b)).toMatchObject({ status: "pending", queue_position: 1 });
    expect(await get(c)).toMatchObject({ status: "pending", queue_position: 2 });
    expect(await thread(c)).toBe("busy");
    open("a");
    await waits("b");
    expect(await get(b)).toMatchObject({ status: "running" });
    expect(await get(b)).not.toHaveProperty("queue_position");
    expect(await get(c)).toMatchObject({ queue_position: 1 });
    open("b");
    open("c");
    expect((await join(c)).log).toEqual(["c began", "c ended"]);
    await join(a);
    await join(b);
  });

  test("on one thread, behind a run that waits too", async () => {
    const { create, get, join, open, waits } = await start(slots(1));
    await create("a");
    await waits("a");
    const b = await create("b");
    const c = await create("c", b.thread_id, "enqueue");
    expect(await get(c)).toMatchObject({ status: "pending", queue_position: 2 });
    for (const name of ["a", "b", "c"]) open(name);
    expect((await join(c)).log).toEqual(["b began", "b ended", "c began", "c ended"]);
  });

  test("can be cancelled: the thread rests, the slot goes to the next", async () => {
    const { create, get, join, open, waits, thread, client } = await start(slots(1));
    await create("a");
    await waits("a");
    const b = await create("b");
    const c = await create("c", b.thread_id, "enqueue");
    const d = await create("d");
    await client.runs.cancel(b.thread_id, b.run_id);
    expect(await get(b)).toMatchObject({ status: "interrupted" });
    await client.runs.cancel(c.thread_id, c.run_id);
    expect(await thread(b)).toBe("idle");
    expect(await get(d)).toMatchObject({ queue_position: 1 });
    open("a");
    open("d");
    await join(d);
    const again = await create("again", b.thread_id);
    open("again");
    expect((await join(again)).log).toEqual(["again began", "again ended"]);
  });

  test.each(["interrupt", "rollback"] as const)("give way to a new one with %s", async (strategy) => {
    const { create, get, join, open, waits } = await start(slots(1));
    await create("a");
    await waits("a");
    const b = await create("b");
    const c = await create("c", b.thread_id, strategy);
    if (strategy === "interrupt") expect(await get(b)).toMatchObject({ status: "interrupted" });
    else await expect(get(b)).rejects.toMatchObject({ status: 404 });
    expect(await get(c)).toMatchObject({ status: "pending", queue_position: 1 });
    open("a");
    open("c");
    expect((await join(c)).log).toEqual(["c began", "c ended"]);
  });

  test("or for memory, where their states are large; one on another thread does not wait", async () => {
    const more = { largeState: 5_000, maxStateBytes: 5_000, maxQueuedBytes: 10_000 };
    const { create, get, join, open, waits, thread, client } = await start(more);
    const large = { name: "", log: ["x".repeat(6_000)] };
    const keep = async (name: string) => {
      const { thread_id } = await client.threads.create();
      open(name);
      await client.runs.wait(thread_id, "held", { input: { ...large, name } });
      return thread_id;
    };
    const [one, two] = [await keep("first"), await keep("second")];
    const a = await create("a", one);
    await waits("a");
    const b = await create("b", two);
    await create("small");
    await waits("small");
    expect(await get(b)).toMatchObject({ status: "pending", queue_position: 1 });
    expect(await thread(b)).toBe("busy");
    const { thread_id } = await client.threads.create();
    const c = await client.runs.create(thread_id, "held", { input: { ...large, name: "c" } });
    const refused = client.threads
      .create()
      .then(({ thread_id: last }) => client.runs.create(last, "held", { input: { ...large, name: "d" } }));
    await expect(refused).rejects.toMatchObject({ status: 429 });
    for (const name of ["a", "b", "c", "small"]) open(name);
    expect((await join(b)).log.slice(1)).toEqual(["second began", "second ended", "b began", "b ended"]);
    expect((await join({ thread_id, run_id: c.run_id })).log).toHaveLength(3);
    expect((await join(a)).log).toHaveLength(5);
  });

  test("are refused with 429 and a time to come again, once too many wait", async () => {
    const { create, join, open, waits, client } = await start({ ...slots(1), maxQueued: 1 });
    await create("a");
    await waits("a");
    const b = await create("b");
    await expect(create("c")).rejects.toMatchObject({ status: 429 });
    await expect(create("c", b.thread_id, "enqueue")).rejects.toMatchObject({ status: 429 });
    expect(await client.runs.list(b.thread_id)).toHaveLength(1);
    open("a");
    await waits("b");
    const c = await create("c");
    open("b");
    open("c");
    await join(c);
  });
});

test.each([
  [{ maxQueued: 4 }, 2],
  [{ maxQueued: 4, maxQueuedPerTenant: 1 }, 1],
])("one tenant's runs do not fill the queue for another's: %j", async (limits, most) => {
  const held = gated();
  const keys = ["one:first-key", "two:second-key"];
  const { url } = await serve({ graphs: { held: held.held }, limits: { ...slots(1), ...limits }, keys });
  const create = async (key: string, name: string) => {
    const headers = { "x-api-key": key, "content-type": "application/json" };
    const body = JSON.stringify({ assistant_id: "held", input: { name }, on_completion: "keep" });
    const { status, ...answer } = await fetch(`${url}/runs`, { method: "POST", headers, body }).then(
      async (answered) => ({ status: answered.status, text: await answered.text() }),
    );
    return { status, ...answer };
  };
  expect(await create("first-key", "a")).toMatchObject({ status: 200 });
  await held.waits("a");
  const statuses = [];
  for (let i = 0; i < 4; i++) statuses.push((await create("first-key", `w${i}`)).status);
  expect(statuses).toEqual([200, 200, 200, 200].map((status, i) => (i < most ? status : 429)));
  expect((await create("first-key", "more")).text).toContain(`${most} of this tenant's runs are waiting`);
  expect(await create("second-key", "b")).toMatchObject({ status: 200 });
  // Runs that have begun no longer count.
  held.open("a");
  await held.waits("w0");
  expect(await create("first-key", "c")).toMatchObject({ status: 200 });
  for (const name of ["w0", "w1", "b", "c"]) held.open(name);
});

test("runs that wait are found again after a restart, and wait for a slot there too", async () => {
  const data = await directory();
  const before = gated();
  const first = await serve({ graphs: { held: before.held }, limits: slots(1), data });
  const [, connect] = lines[0] ?? expect.unreachable();
  const runs = [];
  for (const name of ["a", "b", "c"]) {
    const client = connect(first.url);
    const { thread_id } = await client.threads.create();
    const { run_id } = await client.runs.create(thread_id, "held", { input: { name } });
    if (name === "a") await before.waits("a");
    runs.push({ thread_id, run_id, name });
  }
  // The stop does not wait for queued runs.
  await first.close(0);
  const after = gated();
  const second = await serve({ graphs: { held: after.held }, limits: slots(1), data });
  const client = connect(second.url);
  await Promise.race(runs.map(({ name }) => after.waits(name)));
  const statuses = await Promise.all(
    runs.map(async (run) => (await client.runs.get(run.thread_id, run.run_id)).status),
  );
  expect(statuses.filter((status) => status === "running")).toHaveLength(1);
  for (const { name } of runs) after.open(name);
  for (const { thread_id, run_id, name } of runs) {
    expect(await client.runs.join(thread_id, run_id)).toMatchObject({
      log: [`${name} began`, `${name} ended`],
    });
  }
});

test("one tenant's many runs do not hold up another's only one", async () => {
  const held = gated();
  const keys = ["big:one-key", "small:another"];
  const { url } = await serve({ graphs: { held: held.held }, limits: slots(1), keys });
  const [, connect] = lines[0] ?? expect.unreachable();
  const [big, small] = [connect(url, "one-key"), connect(url, "another")];
  const create = async (client: typeof big, name: string) => {
    const { thread_id } = await client.threads.create();
    const { run_id } = await client.runs.create(thread_id, "held", { input: { name } });
    return { thread_id, run_id };
  };
  await create(big, "big 0");
  await held.waits("big 0");
  const many = [];
  for (let n = 1; n <= 40; n++) {
    many.push(await create(big, `big ${n}`));
    held.open(`big ${n}`);
  }
  const one = await create(small, "small");
  held.open("small");
  held.open("big 0");
  await small.runs.join(one.thread_id, one.run_id);
  // At most one of the others came before it; more may have ended since.
  const order = await Promise.all(
    many.map(async ({ thread_id, run_id }) => (await big.runs.get(thread_id, run_id)).status),
  );
  expect(order.filter((status) => status === "pending").length).toBeGreaterThan(20);
});
