import { expect, onTestFinished, test } from "vitest";
import { type App, createShardApp } from "../../src/app.ts";
import { graph, value } from "../../src/index.ts";
import { systemScheduler } from "../../src/platform/scheduler.ts";
import type { PeerAddress } from "../../src/ports/peers.ts";
import { openPost } from "../e2e/support/wire.ts";
import { CuttingProxy } from "../postgres/cutting-proxy.ts";

const KEY = Buffer.alloc(32, 1);
/** Timers of at least this length, such as the one that cancels a run, end when the test says so. */
const LONG_MS = 11_000;

/** A process with the only shard, and one that forwards all requests to it over a proxy. */
async function twoProcesses() {
  /** The runs of the graph: each ends when the test says so, or is cancelled. */
  const runs: { readonly end: () => void; readonly signal: AbortSignal }[] = [];
  const wait = (_: unknown, { signal }: { readonly signal: AbortSignal }) =>
    new Promise<{ done: number }>((resolve, reject) => {
      runs.push({ end: () => resolve({ done: 1 }), signal });
      signal.addEventListener("abort", () => reject(signal.reason as Error));
    });
  const slow = graph({ state: { done: value(0) }, nodes: { wait }, edges: { start: "wait" } });
  const timers = new Set<() => void>();
  const after: typeof systemScheduler.after = (ms, task, ...rest) => {
    if (ms < LONG_MS || ms > 2 * LONG_MS) return systemScheduler.after(ms, task, ...rest);
    timers.add(task);
    return () => void timers.delete(task);
  };
  let address: (PeerAddress & { readonly port: number }) | undefined;
  let proxy: CuttingProxy | undefined;
  const network = {
    own: { host: "127.0.0.1", port: 0 },
    key: KEY,
    isOwner: () => true,
    addressOf: () => (proxy === undefined ? address : { host: "127.0.0.1", port: proxy.port }),
    onListening: (bound: PeerAddress) => (address = bound as typeof address),
  };
  const start = async (place: { readonly number?: number }): Promise<App> => {
    const scheduler = { ...systemScheduler, after };
    const app = await createShardApp({ graphs: { slow }, scheduler }, { ...place, count: 1, network });
    onTestFinished(() => app.close(0));
    return app;
  };
  await start({ number: 0 });
  const opened = (proxy = await CuttingProxy.to(address?.port ?? 0));
  onTestFinished(() => opened.close());
  const { url } = await start({});
  const begun = async () => {
    await expect.poll(() => runs.length, { interval: 5 }).toBe(1);
    return runs[0] as (typeof runs)[number];
  };
  return { url, proxy: opened, timers, begun };
}

const body = { assistant_id: "slow", input: {} };

test.each(["wait", "stream"])(
  "a run of /runs/%s that ends with its client goes on when the connection between two processes is cut",
  async (how) => {
    const { url, proxy, timers, begun } = await twoProcesses();
    const response = openPost(`${url}/runs/${how}`, { ...body, stream_mode: "updates" });
    const { end, signal } = await begun();
    const cutTimers = [...timers];
    proxy.cut();
    await expect.poll(() => timers.size, { interval: 5 }).toBe(cutTimers.length + 1);
    await expect.poll(() => timers.size, { interval: 5 }).toBe(cutTimers.length);
    end();
    const { status } = await response;
    const text = await (await response).text();
    expect([status, signal.aborted]).toEqual([200, false]);
    expect(text).toContain('"done":1');
  },
);

test("a run whose client leaves is cancelled at once, also when the connection was cut before", async () => {
  const { url, proxy, timers, begun } = await twoProcesses();
  const client = new AbortController();
  const response = fetch(`${url}/runs/wait`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
    signal: client.signal,
  });
  const { signal } = await begun();
  const before = timers.size;
  proxy.cut();
  await expect.poll(() => timers.size, { interval: 5 }).toBe(before + 1);
  await expect.poll(() => timers.size, { interval: 5 }).toBe(before);
  expect(signal.aborted).toBe(false);
  client.abort();
  await expect(response).rejects.toThrow("aborted");
  await expect.poll(() => signal.aborted).toBe(true);
});

test("a run is cancelled some time after the process that forwarded its request has ended", async () => {
  const { url, proxy, timers, begun } = await twoProcesses();
  const response = openPost(`${url}/runs/wait`, body).catch(() => undefined);
  const { signal } = await begun();
  const before = new Set(timers);
  await proxy.close();
  await expect.poll(() => timers.size, { interval: 5 }).toBe(before.size + 1);
  expect(signal.aborted).toBe(false);
  for (const timer of timers) if (!before.has(timer)) timer();
  await expect.poll(() => signal.aborted).toBe(true);
  void response;
});
