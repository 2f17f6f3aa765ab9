import { createHash, randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "pg";
import { type App, type AppOptions, createShardApp, type ProcessPlace } from "../../../src/app.ts";
import { createShardTotals } from "../../../src/app/shard-totals.ts";
import type { Shard } from "../../../src/app/shard.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { systemRandom } from "../../../src/platform/random.ts";
import { systemScheduler } from "../../../src/platform/scheduler.ts";
import type { PeerAddress } from "../../../src/ports/peers.ts";
import { type ClusterDatabase, openOrCreateClusterDatabase } from "../../../src/postgres/cluster-database.ts";
import { ReplicatedKeyValueStore } from "../../../src/replication/replicated-key-value-store.ts";
import type { StorageOptions } from "../../../src/storage/open-storage.ts";

/** The environment variable with the URL of the PostgreSQL that `test/e2e/support/cluster-database.ts` has started. */
export const DATABASE_VARIABLE = "HEDDLE_TEST_POSTGRES";
/** Longer than any test, so that nobody has to renew the leases. */
const LEASE_MS = 3_600_000;
/** The name of the one that holds the leases of all nodes, which are in this process. */
const HOLDER = "holder/1";

/**
 * How the first of three nodes, which gets all requests, takes part: `member` has shard 1, so that assistants, crons and the threads of two
 * shards are at other nodes; `forwarding` has no shard, as a node that has just joined, so that every request is forwarded.
 */
const SHARDS_OF_NODES = {
  member: [1, 0, 2],
  forwarding: [undefined, 0, 1],
} as const;
export type ClusterRole = keyof typeof SHARDS_OF_NODES;

/**
 * Starts three nodes of a cluster in this process, with their logs in PostgreSQL, and returns the first one. They reach each other over TLS,
 * as nodes on different machines do. Only the leases are simpler: nobody renews them, and no shard moves.
 */
export async function startClusterNodes(role: ClusterRole, options: AppOptions): Promise<App> {
  const { data } = options;
  const isKept = typeof data === "string";
  const url = process.env[DATABASE_VARIABLE] as string;
  const schema = `s${isKept ? createHash("sha256").update(data).digest("hex").slice(0, 40) : randomBytes(16).toString("hex")}`;
  const home = isKept ? data : await mkdtemp(join(tmpdir(), "heddle-nodes-"));
  const places = SHARDS_OF_NODES[role];
  const count = places.filter((shard) => shard !== undefined).length;
  const database = await openOrCreateClusterDatabase(
    { url, schema, shards: count, leaseMs: LEASE_MS },
    { scheduler: systemScheduler },
  );
  await database.membership.renew({ id: HOLDER, address: "" }, []);
  const end = async (): Promise<void> => {
    await database.membership.leave(HOLDER);
    await database.close();
    if (isKept) return;
    await rm(home, { recursive: true, force: true });
    await dropSchema(url, schema);
  };
  const addresses = new Map<number, PeerAddress>();
  const key = randomBytes(32);
  const start = async (number: number | undefined, i: number): Promise<App> => {
    const place: ProcessPlace = {
      ...(number !== undefined && { number }),
      count,
      node: `node-${i + 1}`,
      network: {
        own: { host: "127.0.0.1", port: 0 },
        key,
        addressOf: (shard) => addresses.get(shard),
        isOwner: () => true,
        onListening: (address) => number !== undefined && addresses.set(number, address),
      },
    };
    const { port, takeNextPort, ...rest } = options;
    const own = {
      ...rest,
      data: number === undefined ? ({ kind: "memory" } as const) : await dataOf(database, home, number),
      ...(i === 0 && port !== undefined && { port }),
      ...(i === 0 && takeNextPort !== undefined && { takeNextPort }),
    };
    return createShardApp(own, place);
  };
  const started = await Promise.allSettled(places.map(start));
  const apps = started.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  const [entry] = apps;
  const failed = started.find((one) => one.status === "rejected");
  if (failed !== undefined || entry === undefined) {
    await Promise.all(apps.map((app) => app.close(0)));
    await end();
    throw failed?.reason;
  }
  let closed: Promise<void> | undefined;
  // The totals read nothing else of a shard.
  const { system, storage } = createShardTotals(apps as unknown as readonly Shard[]);
  return {
    ...entry,
    system,
    storage,
    replaceGraphs: (...graphs) => {
      for (const app of apps) app.replaceGraphs(...graphs);
    },
    close: (ms) => (closed ??= Promise.all(apps.map((app) => app.close(ms))).then(end)),
  };
}

/** The storage of a shard, whose log is in the cluster's database. */
async function dataOf(database: ClusterDatabase, home: string, shard: number): Promise<StorageOptions> {
  const epoch = await database.membership.take(HOLDER, shard);
  if (epoch === undefined) throw new Error(`shard ${shard} has another holder`);
  const { log } = database;
  const deps = { clock: systemClock, scheduler: systemScheduler, random: systemRandom() };
  return {
    kind: "replicated",
    directory: join(home, "shards", String(shard)),
    replicate: (local) => new ReplicatedKeyValueStore(local, log, { shard, epoch }, deps),
  };
}

async function dropSchema(url: string, schema: string): Promise<void> {
  const client = new Client(url);
  await client.connect();
  await client.query(`DROP SCHEMA ${schema} CASCADE`);
  await client.end();
}
