import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { accept, check } from "../../src/cli/maintenance.ts";
import { gated } from "./support/latches.ts";
import { directory, serve } from "./support/server.ts";
import { dial } from "./support/sockets.ts";
import { ShiftedTime } from "./support/shifted-time.ts";
import { receiver } from "./support/receiver.ts";
import { isSharded } from "./support/suite-variant.ts";
import { get, newThread, post, postJson, twoThreads } from "./support/wire.ts";

/** A server's metrics: the values, by the text before them. */
async function figures(url: string): Promise<ReadonlyMap<string, number>> {
  const answer = await get(`${url}/metrics`);
  expect(answer.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
  const lines = (await answer.text()).split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return new Map(
    lines.map((line) => {
      const end = line.lastIndexOf(" ");
      return [line.slice(0, end), Number(line.slice(end + 1))];
    }),
  );
}
const figure = async (url: string, name: string) => (await figures(url)).get(name);

test("runs are counted by graph and by how they ended; those in progress and those that wait as they stand", async () => {
  const { held, waits, open } = gated();
  const { url } = await serve({ graphs: { held } });
  const thread = await newThread(url);
  const runs = `${url}/threads/${thread}/runs`;
  const run = (name: string) =>
    postJson<{ run_id: string }>(runs, {
      assistant_id: "held",
      input: { name },
      multitask_strategy: "enqueue",
    });
  const first = await run("a");
  const second = await run("b");
  await run("c");
  await waits("a");
  const during = await figures(url);
  expect(during.get("heddle_runs_running")).toBe(1);
  expect(during.get("heddle_runs_queued")).toBe(2);
  expect(during.get('heddle_actors{state="busy"}')).toBe(1);
  expect(during.get('heddle_runs_started_total{graph="held"}')).toBe(1);
  await post(`${runs}/${second.run_id}/cancel?wait=true`);
  open("a");
  await get(`${runs}/${first.run_id}/join`);
  await waits("c");
  await post(`${runs}/cancel?wait=true&action=rollback`);
  const paused = await newThread(url);
  await post(`${url}/threads/${paused}/runs/wait`, { assistant_id: "approval", input: {} });
  const after = await figures(url);
  expect(after.get('heddle_runs_started_total{graph="held"}')).toBe(2);
  expect(after.get('heddle_runs_ended_total{graph="held",status="success"}')).toBe(1);
  expect(after.get('heddle_runs_ended_total{graph="held",status="rolled_back"}')).toBe(1);
  expect(after.get('heddle_runs_ended_total{graph="held",status="interrupted"}')).toBe(0);
  expect(after.get('heddle_runs_ended_total{graph="approval",status="success"}')).toBe(1);
  expect(after.get("heddle_runs_withdrawn_total")).toBe(1);
  expect([after.get("heddle_runs_running"), after.get("heddle_runs_queued")]).toEqual([0, 0]);
  expect(after.get('heddle_actors{state="idle"}')).toBe(2);
  expect(after.get("heddle_actors_woken_total")).toBe(2);
});

test("those that wait for a slot, and actors that are let go after a rest", async () => {
  const { held, waits, open } = gated();
  const concurrent = { all: 1, perTenant: Infinity, perGraph: {} };
  const { url } = await serve({ graphs: { held }, limits: { concurrent, idle: 1 } });
  const [one, two] = await twoThreads(url);
  const run = (thread: string, name: string) =>
    postJson<{ run_id: string }>(`${url}/threads/${thread}/runs`, { assistant_id: "held", input: { name } });
  await run(one, "a");
  await waits("a");
  const { run_id } = await run(two, "b");
  expect(await figure(url, "heddle_runs_waiting_for_slot")).toBe(1);
  open("a");
  open("b");
  await get(`${url}/threads/${two}/runs/${run_id}/join`);
  await expect.poll(() => figure(url, "heddle_actors_passivated_total")).toBe(2);
  expect(await figure(url, 'heddle_actors{state="idle"}')).toBe(0);
});

test("the memory of runs in progress with large states, and those that wait for it", async () => {
  const { held, waits, open } = gated();
  const { url } = await serve({ graphs: { held }, limits: { largeState: 5_000, maxStateBytes: 5_000 } });
  const [one, two] = await twoThreads(url);
  const run = (thread: string, name: string) =>
    postJson<{ run_id: string }>(`${url}/threads/${thread}/runs`, {
      assistant_id: "held",
      input: { name, log: ["x".repeat(6_000)] },
    });
  await run(one, "a");
  await waits("a");
  const { run_id } = await run(two, "b");
  expect(await figure(url, "heddle_runs_state_bytes")).toBeGreaterThan(6_000);
  expect(await figure(url, "heddle_runs_waiting_for_slot")).toBe(1);
  open("a");
  open("b");
  await get(`${url}/threads/${two}/runs/${run_id}/join`);
  expect(await figure(url, "heddle_runs_state_bytes")).toBe(0);
});

test("answers are counted by route and class of status, streams and sockets while they are open", async () => {
  const { held, waits } = gated();
  const { url } = await serve({ graphs: { held } });
  const thread = await newThread(url);
  await get(`${url}/threads/${thread}`);
  await get(`${url}/threads/not-a-uuid`);
  await get(`${url}/nowhere`);
  const aborting = new AbortController();
  const stream = await fetch(`${url}/threads/${thread}/runs/stream`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ assistant_id: "held", input: { name: "a" } }),
    signal: aborting.signal,
  });
  await waits("a");
  const { socket } = await dial(`${url}/threads/${thread}/stream`);
  const { socket: inspector } = await dial(`${url}/inspect`);
  const during = await figures(url);
  const route = '{route="/threads/:thread_id",method="GET"';
  expect(during.get(`heddle_http_requests_total${route},status="2xx"}`)).toBe(1);
  expect(during.get(`heddle_http_requests_total${route},status="4xx"}`)).toBe(1);
  expect(during.get('heddle_http_requests_total{route="",method="",status="4xx"}')).toBe(1);
  const connections = (all: ReadonlyMap<string, number>) =>
    ["sse", "websocket", "inspect"].map((kind) => all.get(`heddle_connections{kind="${kind}"}`));
  expect(connections(during)).toEqual([1, 1, 1]);
  aborting.abort();
  await stream.text().catch(() => undefined);
  socket.close();
  inspector.close();
  await expect.poll(async () => connections(await figures(url))).toEqual([0, 0, 0]);
});

test("webhooks that are owed and that were given up, batches, and the size on the disk", async () => {
  const hook = await receiver(() => 500);
  const data = await directory();
  const { url } = await serve({
    data,
    webhooks: { allow_internal: true, attempts: 1 },
  });
  const thread = await newThread(url);
  await post(`${url}/threads/${thread}/runs/wait`, {
    assistant_id: "approval",
    input: {},
    webhook: hook.url,
  });
  await expect.poll(() => figure(url, 'heddle_webhooks{status="dead"}'), { timeout: 30_000 }).toBe(1);
  const all = await figures(url);
  expect(all.get('heddle_webhooks{status="pending"}')).toBe(0);
  const batches = all.get("heddle_storage_batches_total") ?? 0;
  const synced = all.get("heddle_storage_synced_batches_total") ?? 0;
  expect(synced).toBeGreaterThan(0);
  expect(batches).toBeGreaterThanOrEqual(synced);
  expect(all.get("heddle_storage_size_bytes")).toBeGreaterThan(100);
});

// The next two change files in the directory of a server with one shard.
test.skipIf(isSharded)(
  "what is kept back since data was lost is a figure, and /ready tells it and stays ready",
  async () => {
    const data = await directory();
    const first = await serve({ data });
    const threads: string[] = [];
    for (let n = 0; n < 2; n++) {
      const thread = await newThread(first.url);
      for (let runs = 0; runs < 6; runs++) {
        await post(`${first.url}/threads/${thread}/runs/wait`, { assistant_id: "approval", input: {} });
      }
      threads.push(thread);
    }
    expect((await figures(first.url)).get('heddle_storage_damaged{kind="threads"}')).toBe(0);
    await first.close();
    // Flips a bit in the first thread's stored data.
    const database = join(data, "level");
    const log = (await readdir(database)).find((name) => name.endsWith(".log")) ?? "";
    const bytes = await readFile(join(database, log));
    const place = bytes.indexOf(`/t/${threads[0]}/`) + 10;
    bytes[place] = (bytes[place] ?? 0) ^ 1;
    await writeFile(join(database, log), bytes);

    const { url } = await serve({ data });
    const ready = await get(`${url}/ready`);
    expect(ready.status).toBe(200);
    const { damaged } = (await ready.json()) as { damaged: Record<string, number> };
    expect(damaged["threads"]).toBeGreaterThan(0);
    const all = await figures(url);
    for (const kind of ["threads", "keys", "ranges", "findings"]) {
      expect(all.get(`heddle_storage_damaged{kind="${kind}"}`)).toBe(damaged[kind]);
    }
    const refused = await get(`${url}/threads/${threads[0]}`);
    expect([refused.status, await refused.json()]).toMatchObject([500, { code: "journal.damaged" }]);
  },
);

test.skipIf(isSharded)(
  "a lost ledger of batches is told by /ready and by a figure until it is accepted; nothing is refused for it",
  async () => {
    const data = await directory();
    const first = await serve({ data });
    const thread = await newThread(first.url);
    await first.close();
    await rm(join(data, "batches"), { recursive: true });
    const damaged = { threads: 0, keys: 0, ranges: 0, findings: 1 };
    for (let starts = 0; starts < 2; starts++) {
      const server = await serve({ data });
      expect(await (await get(`${server.url}/ready`)).json()).toMatchObject({ ok: true, damaged });
      expect((await figures(server.url)).get('heddle_storage_damaged{kind="findings"}')).toBe(1);
      expect((await get(`${server.url}/threads/${thread}`)).status).toBe(200);
      await server.close();
    }
    const lines: string[] = [];
    const say = (line: string) => void lines.push(line);
    expect(await check(data, say)).toBe(1);
    expect(lines).toEqual([
      expect.stringContaining("the ledger of batches (batches/) is missing or empty"),
      `${data}: 1 finding, 0 threads affected (0 refused)`,
      expect.stringContaining('"heddle repair --accept"'),
    ]);
    await accept(data, say);
    expect(await check(data, say)).toBe(0);
    const { url } = await serve({ data });
    expect(await (await get(`${url}/ready`)).json()).not.toHaveProperty("damaged");
  },
);

test("what the process takes is told; a storage in memory has no size", async () => {
  const { url } = await serve({ data: { kind: "memory" } });
  const all = await figures(url);
  for (const name of [
    "process_cpu_seconds_total",
    "process_resident_memory_bytes",
    "process_start_time_seconds",
    "nodejs_heap_size_used_bytes",
    "heddle_event_loop_active_seconds_total",
  ]) {
    expect(all.get(name), name).toBeGreaterThan(0);
  }
  expect(all.has("heddle_storage_size_bytes")).toBe(false);
  await expect.poll(() => figure(url, "heddle_event_loop_lag_seconds_count")).toBeGreaterThan(1);
});

test("two servers in one process count for themselves", async () => {
  const [one, two] = [await serve(), await serve()];
  await post(`${one.url}/runs/wait`, { assistant_id: "approval", input: {} });
  const name = 'heddle_runs_started_total{graph="approval"}';
  expect([await figure(one.url, name), await figure(two.url, name)]).toEqual([1, undefined]);
});

test("where there are keys it takes one; another format than Prometheus' is refused, by name; http.disable_meta takes it away", async () => {
  const { url } = await serve({ keys: ["sesame"] });
  expect((await get(`${url}/metrics`)).status).toBe(401);
  expect((await get(`${url}/metrics`, { authorization: "Bearer sesame" })).status).toBe(200);
  const odd = await get(`${url}/metrics?format=json`, { "x-api-key": "sesame" });
  expect([odd.status, await odd.json()]).toMatchObject([422, { errors: [{ at: "format" }] }]);
  const config = join(await directory(), "heddle.json");
  await writeFile(config, JSON.stringify({ graphs: {}, http: { disable_meta: true } }));
  const without = await serve({ config });
  expect((await get(`${without.url}/metrics`)).status).toBe(404);
});

test("the history has what happened since the start", async () => {
  const { held, waits, open } = gated();
  const time = new ShiftedTime();
  const { url } = await serve({ graphs: { held }, clock: time.clock, scheduler: time.scheduler });
  const thread = await newThread(url);
  const run = (name: string) =>
    postJson<{ run_id: string }>(`${url}/threads/${thread}/runs`, {
      assistant_id: "held",
      input: { name },
      multitask_strategy: "enqueue",
    });
  await run("a");
  const second = await run("b");
  await waits("a");
  time.advance(4_000);
  open("a");
  await waits("b");
  open("b");
  await get(`${url}/threads/${thread}/runs/${second.run_id}/join`);
  time.advance(10_000);
  type History = { times: string[]; figures: Record<string, (number | null)[]> };
  const history = async () => (await (await get(`${url}/metrics/history`)).json()) as History;
  await expect.poll(async () => (await history()).times.length, { timeout: 10_000 }).toBe(2);
  const { figures: all } = await history();
  const last = (name: string) => all[name]?.at(-1) ?? Number.NaN;
  expect(last("runs_ended_per_second")).toBeGreaterThan(0.1);
  expect(last("run_wait_p50_seconds")).toBeLessThan(2);
  expect(last("run_wait_p99_seconds")).toBeGreaterThanOrEqual(4);
  expect([last("runs_running"), last("runs_failed_per_second"), last("webhooks_dead")]).toEqual([0, 0, 0]);
  expect(last("memory_bytes")).toBeGreaterThan(1e6);
  expect(last("requests_per_second")).toBeGreaterThan(0);
});

test("the history needs a key where there are keys", async () => {
  const { url } = await serve({ keys: ["sesame"] });
  expect((await get(`${url}/metrics/history`)).status).toBe(401);
  expect((await get(`${url}/metrics/history`, { "x-api-key": "sesame" })).status).toBe(200);
});
