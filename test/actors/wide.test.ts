import { Session } from "node:inspector/promises";
import { afterAll, expect, test } from "vitest";

// V8 counts only code that it compiles from here on, so everything else is imported later.
const session = new Session();
session.connect();
await session.post("Profiler.enable");
await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: true });
afterAll(() => session.disconnect());

const { graph, list, send, value } = await import("../../src/index.ts");
const { Server } = await import("./server.ts");

/** A graph with `count` parallel nodes, and one that waits for all of them. */
const wide = graph({
  state: { width: value<number>(), seen: list<number>() },
  nodes: {
    leaf: { run: async (n) => ({ seen: [n as unknown as number] }) },
    join: async () => ({}),
  },
  edges: {
    start: ({ width }) => Array.from({ length: width ?? 0 }, (_, n) => send("leaf", n)),
    leaf: "join",
  },
});

/** How often each block of Heddle's code has run since the last call, by its position. */
async function passes(): Promise<ReadonlyMap<string, number>> {
  const { result } = await session.post("Profiler.takePreciseCoverage");
  const counts = new Map<string, number>();
  for (const { url, functions } of result) {
    const own = /\/(?:actors|src)\/.*\.ts$/.exec(url)?.[0];
    if (own === undefined) continue;
    for (const { functionName, ranges } of functions)
      for (const { startOffset, count } of ranges) {
        const place = `${own} ${functionName} ${startOffset}`;
        counts.set(place, Math.max(counts.get(place) ?? 0, count));
      }
  }
  return counts;
}

async function runOf(width: number): Promise<ReadonlyMap<string, number>> {
  const server = await Server.start(wide);
  const key = await server.thread();
  await passes();
  const run = await server.admit(key, { input: { width } });
  const end = await server.do(server.system.settled(key, run.run_id));
  const counts = await passes();
  expect(end?.status).toBe("success");
  expect((await server.values(key))["seen"]).toHaveLength(width);
  return counts;
}

test("a step of twice as many tasks is twice the work: no piece of code is gone through much more often", async () => {
  await runOf(10);
  const [narrow, broad] = [await runOf(1_000), await runOf(2_000)];
  const grown = [...broad].filter(
    ([place, count]) => count > 1_000 && count > 2.5 * (narrow.get(place) ?? 0),
  );
  expect(grown).toEqual([]);
  // The coverage contains Heddle's code at all.
  expect([...broad.values()].filter((count) => count >= 2_000).length).toBeGreaterThan(20);
});
