import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, onTestFinished, test } from "vitest";
import { createSystem, defaultLimits } from "../../actors/create-system.ts";
import { createInThreadNodeExecutor } from "../../src/engine/in-thread-node-executor.ts";
import { createNativeEngine } from "../../src/engine/native-engine.ts";
import { GraphRegistry } from "../../src/graph/graph-registry.ts";
import { graph, list } from "../../src/index.ts";
import { silentLogger } from "../../src/platform/log.ts";
import { createMonotonicIds } from "../../src/model/ids.ts";
import { noFailpoints } from "../../src/ports/failpoints.ts";
import { createStore, DEFAULT_STORE_POLICY } from "../../src/service/store/store.ts";
import { openStorage } from "../../src/storage/open-storage.ts";
import { createRunLogRegistry } from "../../src/stream/run-log-registry.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { readSystemHeapUsage } from "../../src/platform/heap-usage.ts";
import { systemRandom } from "../../src/platform/random.ts";
import { systemScheduler } from "../../src/platform/scheduler.ts";
import { draftOf } from "./draft.ts";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

const THREADS = 5_000;
/** The number of concurrent threads, and of idle actors that are kept. */
const AT_ONCE = 100;

test(`${THREADS} idle threads leave the heap`, { timeout: 180_000 }, async () => {
  const directory = mkdtempSync(join(tmpdir(), "heddle-idle-"));
  const deps = {
    scheduler: systemScheduler,
    clock: systemClock,
    failpoints: noFailpoints,
    heap: readSystemHeapUsage,
    logger: silentLogger,
  };
  const storage = await openStorage({ kind: "level", directory }, deps);
  onTestFinished(async () => {
    await storage.close();
    rmSync(directory, { recursive: true });
  });
  const { journal, catalog } = storage;
  const random = systemRandom();
  const talk = graph({
    state: { log: list<string>() },
    nodes: { work: async () => ({ log: ["x".repeat(500)] }) },
    edges: { start: "work" },
  });
  const registry = new GraphRegistry().add("graph", talk);
  const system = createSystem({
    ...deps,
    journal,
    engine: createNativeEngine(registry, systemScheduler),
    executor: createInThreadNodeExecutor(registry, { ...deps, random }),
    store: createStore({ ...deps, items: catalog.items, policy: DEFAULT_STORE_POLICY }),
    sinks: createRunLogRegistry({ journal, scheduler: systemScheduler, logger: silentLogger }),
    random,
    boot: "boot",
    limits: { ...defaultLimits, maxIdle: AT_ONCE },
  });
  const newId = createMonotonicIds(
    () => systemClock.now(),
    (count) => random.bytes(count),
  );
  const one = async () => {
    const key = { tenant: "_", thread: newId() };
    await system.create(key, { metadata: {}, if_exists: "raise" });
    const run = await system.admit(key, draftOf(newId()));
    expect((await system.settled(key, run.run_id))?.status).toBe("success");
  };
  const many = async (count: number) => {
    for (let done = 0; done < count; done += AT_ONCE) await Promise.all(Array.from({ length: AT_ONCE }, one));
  };
  const heap = () => {
    collect();
    return process.memoryUsage().heapUsed;
  };
  await many(1_000);
  const before = heap();
  await many(THREADS);
  const perThread = (heap() - before) / THREADS;
  expect(system.counts.live).toBeLessThanOrEqual(AT_ONCE);
  // A live thread has 4 KB for its actor alone; what remains is compiled code, not threads.
  expect(perThread).toBeLessThan(1_000);
});
