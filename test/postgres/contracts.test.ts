import { Client } from "pg";
import { afterAll, beforeAll, describe } from "vitest";
import { systemClock } from "../../src/platform/clock.ts";
import { systemRandom } from "../../src/platform/random.ts";
import { systemScheduler } from "../../src/platform/scheduler.ts";
import { type ClusterDatabase, openOrCreateClusterDatabase } from "../../src/postgres/cluster-database.ts";
import { ReplicatedKeyValueStore } from "../../src/replication/replicated-key-value-store.ts";
import { MemoryKeyValueStore } from "../../src/storage/memory-key-value-store.ts";
import { membershipContract, shardLogContract, shardSnapshotsContract } from "../../src/testing.ts";
import { testKeyValueStore } from "../contracts/key-value-store.ts";
import { runContract } from "../contracts/run-contract.ts";
import { type PostgresServer, startPostgres } from "./postgres-server.ts";

const SHARDS = 100;
/** Longer than a test takes: time passes only as the test says. */
const LEASE_MS = 100_000;

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
    const options = {
      url: server.url,
      schema: `prepared_${prepared}`,
      shards: SHARDS,
      prepared,
      leaseMs: LEASE_MS,
    };
    databases = await Promise.all(
      [1, 2].map(() => openOrCreateClusterDatabase(options, { scheduler: systemScheduler })),
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

  const empty = (epoch: number) =>
    client.query(`
      TRUNCATE prepared_${prepared}.log, prepared_${prepared}.nodes, prepared_${prepared}.snapshots, prepared_${prepared}.snapshot_parts;
      UPDATE prepared_${prepared}.shards SET epoch = ${epoch}, trimmed_below = 1, owner = NULL, lease_until = NULL`);

  runContract("membership", membershipContract, async () => {
    await empty(0);
    // Moves the ends of leases and lives back, so that the test need not wait.
    const pass = async (ms: number): Promise<void> => {
      await client.query(`
        UPDATE prepared_${prepared}.shards SET lease_until = lease_until - ${ms} * interval '1 millisecond';
        UPDATE prepared_${prepared}.nodes SET lives_until = lives_until - ${ms} * interval '1 millisecond'`);
    };
    const [{ membership, log }, other] = [one(), two().membership];
    return { harness: { membership, other, log, leaseMs: LEASE_MS, pass } };
  });

  runContract("snapshots", shardSnapshotsContract, async () => {
    await empty(0);
    return { harness: { snapshots: one().snapshots, other: two().snapshots } };
  });

  runContract("shard log", shardLogContract, async () => {
    await empty(1);
    return { harness: { log: one().log, other: two().log, newEpoch } };
  });

  // Each test gets a shard of its own.
  let shards = 3;
  testKeyValueStore("replicated", () => ({
    store: new ReplicatedKeyValueStore(
      new MemoryKeyValueStore(),
      one().log,
      { shard: shards++, epoch: 1 },
      { clock: systemClock, scheduler: systemScheduler, random: systemRandom() },
    ),
  }));
});
