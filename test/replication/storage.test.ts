import { describe, expect, onTestFinished, test } from "vitest";
import { systemClock } from "../../src/platform/clock.ts";
import { systemRandom } from "../../src/platform/random.ts";
import { systemScheduler } from "../../src/platform/scheduler.ts";
import { MemoryShardLog } from "../../src/replication/memory-shard-log.ts";
import { ReplicatedKeyValueStore } from "../../src/replication/replicated-key-value-store.ts";
import { MemoryKeyValueStore } from "../../src/storage/memory-key-value-store.ts";
import { openStorage } from "../../src/storage/open-storage.ts";
import { deps as storageDeps } from "../storage/support.ts";
import { FaultyShardLog } from "./faulty-shard-log.ts";

const deps = { clock: systemClock, scheduler: systemScheduler, random: systemRandom(), patienceMs: 0 };
const ITEM = { namespace: ["tea"], key: "green" };

async function openReplicated() {
  const log = new MemoryShardLog();
  const connection = new FaultyShardLog(log);
  let fenced = 0;
  const store = new ReplicatedKeyValueStore(
    new MemoryKeyValueStore(),
    connection,
    { shard: 0, epoch: log.newEpoch(0) },
    { ...deps, onFenced: () => fenced++ },
  );
  const storage = await openStorage({ kind: "key-value", store }, storageDeps);
  onTestFinished(() => storage.close());
  return { log, connection, storage, fenced: () => fenced };
}

describe("a storage over a replicated store", () => {
  test("refuses writes while the log does not answer, reads go on, and it heals by itself", async () => {
    const { connection, storage } = await openReplicated();
    await storage.check();
    connection.isDown = true;
    await expect(storage.check()).rejects.toMatchObject({ code: "storage.unavailable" });
    expect(await storage.catalog.items.find("_", ITEM)).toBeUndefined();
    connection.isDown = false;
    await expect.poll(() => storage.check().then(() => "stored")).toBe("stored");
  });

  test("is told once when another node has taken its shard, and goes on refusing", async () => {
    const { log, storage, fenced } = await openReplicated();
    log.newEpoch(0);
    await expect(storage.check()).rejects.toMatchObject({ code: "log.fenced" });
    await expect(storage.check()).rejects.toMatchObject({ code: "log.fenced" });
    expect(fenced()).toBe(1);
  });
});
