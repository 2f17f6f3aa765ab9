import { Client } from "pg";
import { afterAll, beforeAll, describe } from "vitest";
import { systemClock } from "../../src/platform/clock.ts";
import { systemRandom } from "../../src/platform/random.ts";
import { systemScheduler } from "../../src/platform/scheduler.ts";
import { type ClusterDatabase, openClusterDatabase } from "../../src/postgres/cluster-database.ts";
import { ReplicatedKeyValueStore } from "../../src/replication/replicated-key-value-store.ts";
import { MemoryKeyValueStore } from "../../src/storage/memory-key-value-store.ts";
import { shardLogContract } from "../../src/testing.ts";
import { keyValueStoreContract } from "../contracts/key-value-store.ts";
import { runContract } from "../contracts/run-contract.ts";
import { type PostgresServer, startPostgres } from "./postgres-server.ts";

const SHARDS = 100;

let server: PostgresServer;
let client: Client;
beforeAll(async () => {
  server = await startPostgres();
  client = new Client(server.url);
  await client.connect();
});
afterAll(async () => {
  await client.end();
  await server.remove();
});

describe.each([
  ["with", true],
  ["without", false],
] as const)("PostgreSQL, %s prepared statements", (_, prepared) => {
  let databases: readonly ClusterDatabase[];
  const [one, two] = [() => databases[0] as ClusterDatabase, () => databases[1] as ClusterDatabase];
  beforeAll(async () => {
    const options = { url: server.url, schema: `prepared_${prepared}`, shards: SHARDS, prepared };
    databases = await Promise.all(
      [1, 2].map(() => openClusterDatabase(options, { scheduler: systemScheduler })),
    );
    await client.query(`UPDATE prepared_${prepared}.shards SET epoch = 1`);
  });
  afterAll(async () => {
    for (const database of databases) await database.close();
  });

  const newEpoch = async (shard: number): Promise<number> => {
    const { rows } = await client.query<{ epoch: string }>(
      `UPDATE prepared_${prepared}.shards SET epoch = epoch + 1 WHERE shard = $1 RETURNING epoch`,
      [shard],
    );
    return Number(rows[0]?.epoch);
  };

  runContract("shard log", shardLogContract, async () => {
    await client.query(
      `TRUNCATE prepared_${prepared}.log; UPDATE prepared_${prepared}.shards SET epoch = 1, trimmed_below = 1`,
    );
    return { harness: { log: one().log, other: two().log, newEpoch } };
  });

  // Each test gets a shard of its own.
  let shards = 3;
  keyValueStoreContract("replicated", () => ({
    store: new ReplicatedKeyValueStore(
      new MemoryKeyValueStore(),
      one().log,
      { shard: shards++, epoch: 1 },
      { clock: systemClock, scheduler: systemScheduler, random: systemRandom() },
    ),
  }));
});
