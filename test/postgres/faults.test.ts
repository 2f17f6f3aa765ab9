import { Client } from "pg";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { unpackWriteBatch } from "../../src/codec/value-encoding.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { systemRandom } from "../../src/platform/random.ts";
import { systemScheduler } from "../../src/platform/scheduler.ts";
import type { ShardLog } from "../../src/ports/shard-log.ts";
import {
  type ClusterDatabase,
  type ClusterDatabaseOptions,
  openExistingClusterDatabase,
  openOrCreateClusterDatabase,
} from "../../src/postgres/cluster-database.ts";
import { checkPostgresVersion } from "../../src/postgres/cluster-schema.ts";
import { ReplicatedKeyValueStore } from "../../src/replication/replicated-key-value-store.ts";
import { MemoryKeyValueStore } from "../../src/storage/memory-key-value-store.ts";
import { type Cut, CuttingProxy } from "./cutting-proxy.ts";
import { type PostgresServer, startPostgres, urlOf } from "./postgres-server.ts";

let server: PostgresServer;
let schemas = 0;
beforeAll(async () => {
  server = await startPostgres();
});
afterAll(async () => {
  await server.remove();
});

const newSchema = (): string => `cluster_${schemas++}`;
const bytes = (text: string): Uint8Array => Buffer.from(text);

async function openDatabase(options: Partial<ClusterDatabaseOptions> = {}): Promise<ClusterDatabase> {
  const all = { url: server.url, schema: newSchema(), shards: 2, ...options };
  const database = await openOrCreateClusterDatabase(all, { scheduler: systemScheduler });
  onTestFinished(() => database.close());
  return database;
}

/** Runs statements as an administrator of the database. */
async function administer(text: string): Promise<readonly Record<string, unknown>[]> {
  const client = new Client(`${server.url}?options=-c%20default_transaction_read_only%3Doff`);
  await client.connect();
  try {
    const { rows } = await client.query<Record<string, unknown>>(text);
    return rows;
  } finally {
    await client.end();
  }
}

async function newEpoch(schema: string, shard: number): Promise<number> {
  await administer(`UPDATE ${schema}.shards SET epoch = epoch + 1 WHERE shard = ${shard}`);
  const [row] = await administer(`SELECT epoch FROM ${schema}.shards WHERE shard = ${shard}`);
  return Number(row?.["epoch"]);
}

const replicated = (
  log: ShardLog,
  epoch: number,
  patienceMs?: number,
  inner = new MemoryKeyValueStore(),
): ReplicatedKeyValueStore =>
  new ReplicatedKeyValueStore(
    inner,
    log,
    { shard: 0, epoch },
    {
      clock: systemClock,
      scheduler: systemScheduler,
      random: systemRandom(),
      ...(patienceMs === undefined ? {} : { patienceMs }),
    },
  );

async function loggedKeys(log: ShardLog): Promise<string[]> {
  const entries = await log.read(0, 1, 10_000_000);
  return entries.flatMap(({ batch }) => unpackWriteBatch(batch).map(({ key }) => key));
}

describe("connections that break", () => {
  test.each<Cut>(["before-request", "after-request", "before-answer", "hang"])(
    "cut %s: each append is stored once and answered",
    async (cut) => {
      const schema = newSchema();
      await openDatabase({ schema });
      const proxy = await CuttingProxy.to(server.port);
      onTestFinished(() => proxy.close());
      const database = await openDatabase({ schema, url: urlOf(proxy.port), timeoutMs: 300 });
      const store = replicated(database.log, await newEpoch(schema, 0), 30_000);
      await store.open();
      const keys = Array.from({ length: 5 }, (_, i) => `key${i}`);
      for (const key of keys) {
        proxy.next = cut;
        await store.batch([{ key, value: Buffer.from(key) }]);
        await store.batch([{ key: `${key}/2`, value: Buffer.alloc(100_000) }]);
      }
      expect(await loggedKeys(database.log)).toEqual(keys.flatMap((key) => [key, `${key}/2`]));
      await store.close();
    },
  );

  test("owners that take over from each other, over connections that are cut, lose and repeat nothing", async () => {
    const schema = newSchema();
    const reader = await openDatabase({ schema });
    const cuts: readonly Cut[] = ["before-answer", "after-request", "before-request"];
    const acknowledged: string[] = [];
    /** Writes until another owner has taken the shard. */
    const write = async (owner: number): Promise<void> => {
      const proxy = await CuttingProxy.to(server.port);
      onTestFinished(() => proxy.close());
      const database = await openDatabase({ schema, url: urlOf(proxy.port), timeoutMs: 2_000 });
      const store = replicated(database.log, await newEpoch(schema, 0), 30_000);
      await store.open();
      for (let i = 0; ; i++) {
        if (i % 5 === 0) proxy.next = cuts[(i / 5 + owner) % cuts.length];
        const key = `${owner}/${i}`;
        try {
          await store.batch([{ key, value: Buffer.from(key) }]);
        } catch (error) {
          expect(error).toMatchObject({ code: "log.fenced" });
          return store.close();
        }
        acknowledged.push(key);
        if (i === 10) written();
      }
    };
    let written = (): void => {};
    const writers: Promise<void>[] = [];
    for (let owner = 0; owner < 5; owner++) {
      const enough = new Promise<void>((resolve) => (written = resolve));
      const writer = write(owner);
      writers.push(writer);
      await Promise.race([enough, writer]);
    }
    await newEpoch(schema, 0);
    await Promise.all(writers);

    const keys = await loggedKeys(reader.log);
    expect(new Set(keys).size).toBe(keys.length);
    expect(keys.filter((key) => acknowledged.includes(key)).toSorted()).toEqual(acknowledged.toSorted());
    const entries = await reader.log.read(0, 1, 10_000_000);
    const epochs = entries.map(({ epoch }) => epoch);
    expect(epochs).toEqual(epochs.toSorted((a, b) => a - b));
    // What an owner has written is in its order, and before all that the next one has written.
    const order = keys.map((key) => key.split("/").map(Number) as [number, number]);
    expect(order).toEqual(order.toSorted((a, b) => a[0] - b[0] || a[1] - b[1]));
  });

  test("a restart of the database is waited for", async () => {
    const schema = newSchema();
    const database = await openDatabase({ schema });
    const store = replicated(database.log, await newEpoch(schema, 0), 30_000);
    await store.open();
    await store.batch([{ key: "a", value: bytes("a") as Buffer }]);
    await server.stop();
    const stored = store.batch([{ key: "b", value: bytes("b") as Buffer }]);
    await server.start();
    await stored;
    expect(await loggedKeys(database.log)).toEqual(["a", "b"]);
    await store.close();
  });

  test("while the database is gone for longer, batches fail, reads go on, and it heals when the store is opened again", async () => {
    const schema = newSchema();
    const database = await openDatabase({ schema });
    const store = replicated(database.log, await newEpoch(schema, 0), 0);
    await store.open();
    await store.batch([{ key: "a", value: bytes("a") as Buffer }]);
    await server.stop();
    try {
      const unavailable = {
        code: "storage.unavailable",
        message: expect.stringMatching(/PostgreSQL at 127\.0\.0\.1:\d+ (cannot be reached|is shutting down)/),
      };
      await expect(store.batch([{ key: "b", value: bytes("b") as Buffer }])).rejects.toMatchObject(
        unavailable,
      );
      await expect(store.probe()).rejects.toMatchObject(unavailable);
      expect(await store.get("a")).toEqual(bytes("a"));
    } finally {
      await server.start();
    }
    await store.probe();
    await store.close();
    await store.open();
    await store.batch([{ key: "c", value: bytes("c") as Buffer }]);
    expect(await loggedKeys(database.log)).toEqual(["a", "c"]);
    await store.close();
  });
});

test("after a backup was restored, a node that has applied more is refused, also when the log is as long again", async () => {
  const schema = newSchema();
  const { membership, log } = await openDatabase({ schema });
  /** Takes the shard over a store, appends an entry, and gives the shard up. */
  const serve = async (node: string, inner: MemoryKeyValueStore): Promise<void> => {
    const epoch = (await membership.take(node, 0)) as number;
    const store = replicated(log, epoch, undefined, inner);
    try {
      await store.open();
      await store.batch([{ key: node, value: Buffer.from(node) }]);
    } finally {
      await store.close();
      await membership.give(node, { shard: 0, epoch });
    }
  };
  const newer = new MemoryKeyValueStore();
  await administer(`CREATE TABLE ${schema}.backup AS SELECT * FROM ${schema}.shards`);
  await serve("before", newer);
  await administer(`
    DELETE FROM ${schema}.log;
    UPDATE ${schema}.shards AS s SET epoch = b.epoch FROM ${schema}.backup AS b WHERE s.shard = b.shard`);
  await serve("after", new MemoryKeyValueStore());
  await expect(serve("before", newer)).rejects.toMatchObject({
    code: "journal.damaged",
    message: expect.stringContaining("has lost entries"),
  });
});

describe("what is wrong is said", () => {
  test("gone at the start", async () => {
    await expect(openDatabase({ url: urlOf(1) })).rejects.toMatchObject({
      code: "storage.unavailable",
      message: expect.stringMatching(/^PostgreSQL at 127\.0\.0\.1:1 cannot be reached.*ECONNREFUSED/),
    });
  });

  test.each([
    ["wrong password", () => urlOf(server.port, "postgres", "wrong"), /refuses the user or the password/],
    ["unknown user", () => urlOf(server.port, "nobody", "wrong"), /refuses the user or the password/],
    ["unknown database", () => server.url.replace(/postgres$/, "none"), /has no such database/],
    ["no URL", () => "postgres://user:wrong@host:none/x", /no valid URL/],
  ])("%s", async (_, url, message) => {
    const error = await openDatabase({ url: url() }).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "config.invalid", message: expect.stringMatching(message) });
    expect((error as Error).message).not.toContain("wrong");
  });

  test("a user without rights", async () => {
    await administer("CREATE ROLE reader LOGIN PASSWORD 'reader'");
    await expect(openDatabase({ url: urlOf(server.port, "reader", "reader") })).rejects.toMatchObject({
      code: "config.invalid",
      message: expect.stringContaining("rights"),
    });
  });

  test("read-only: at the start, and later", async () => {
    const schema = newSchema();
    const url = `${server.url}?options=-c%20default_transaction_read_only%3Don`;
    const readOnly = { code: "storage.unavailable", message: expect.stringContaining("read-only") };
    await expect(openDatabase({ url, schema })).rejects.toMatchObject(readOnly);

    const database = await openDatabase({ schema });
    const epoch = await newEpoch(schema, 0);
    await administer("ALTER ROLE postgres SET default_transaction_read_only = on");
    try {
      await administer(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'heddle'",
      );
      const refused = () => database.log.append(0, 1, epoch, bytes("a")).catch((error: unknown) => error);
      await expect.poll(refused).toMatchObject(readOnly);
    } finally {
      await administer("ALTER ROLE postgres RESET ALL");
    }
    // The refused connection was closed; a new one may write.
    await database.log.append(0, 1, epoch, bytes("a"));
  });

  test("full", async () => {
    const schema = newSchema();
    const database = await openDatabase({ schema });
    const epoch = await newEpoch(schema, 0);
    await administer(`
      CREATE FUNCTION ${schema}.full() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full'; END $$;
      CREATE TRIGGER full_disk BEFORE INSERT ON ${schema}.log FOR EACH ROW EXECUTE FUNCTION ${schema}.full();`);
    await expect(database.log.append(0, 1, epoch, bytes("a"))).rejects.toMatchObject({
      code: "storage.unavailable",
      message: expect.stringContaining("full disk"),
    });
    await administer(`DROP TRIGGER full_disk ON ${schema}.log`);
    await database.log.append(0, 1, epoch, bytes("a"));
  });

  test("too old", () => {
    expect(() => checkPostgresVersion(130_012)).toThrow(/PostgreSQL 13; version 14 or later/);
    checkPostgresVersion(140_000);
  });

  test("tables of another version, and another number of shards", async () => {
    const schema = newSchema();
    const { id } = await openDatabase({ schema, shards: 4 });
    await expect(openDatabase({ schema, shards: 8 })).rejects.toMatchObject({
      code: "config.invalid",
      message: expect.stringContaining("4 shards, not 8"),
    });
    expect((await openDatabase({ schema, shards: 4 })).id).toBe(id);
    await administer(`UPDATE ${schema}.cluster SET format = 99`);
    await expect(openDatabase({ schema, shards: 4 })).rejects.toMatchObject({ code: "storage.version" });
  });
});

test("tables of version 1 are upgraded by the first node that starts", async () => {
  const schema = newSchema();
  const { id } = await openDatabase({ schema });
  await administer(`
    ALTER TABLE ${schema}.snapshots DROP COLUMN made_at;
    INSERT INTO ${schema}.snapshots (shard, seq, parts, bytes) VALUES (0, 1, 0, 0);
    UPDATE ${schema}.cluster SET format = 1`);
  await expect(
    openExistingClusterDatabase({ url: server.url, schema }, { scheduler: systemScheduler }),
  ).rejects.toMatchObject({ code: "storage.version", message: expect.stringContaining("version 1") });
  const databases = await Promise.all(Array.from({ length: 4 }, () => openDatabase({ schema })));
  expect(databases.map((one) => one.id)).toEqual([id, id, id, id]);
  const { snapshots } = databases[0] as ClusterDatabase;
  expect(await snapshots.list(0)).toMatchObject([{ seq: 1, madeAt: 0 }]);
  async function* noParts(): AsyncGenerator<Uint8Array> {}
  const { madeAt } = await snapshots.put(0, 2, noParts());
  expect(Math.abs(Date.now() - madeAt)).toBeLessThan(60_000);
});

test("nodes that start at the same time create the tables once", async () => {
  const schema = `a "name'${newSchema()}`;
  const databases = await Promise.all(Array.from({ length: 8 }, () => openDatabase({ schema })));
  expect(new Set(databases.map(({ id }) => id)).size).toBe(1);
});

test("two clusters in one database, in schemas of their own, are separate", async () => {
  const [one, two] = [newSchema(), newSchema()];
  const first = await openDatabase({ schema: one });
  const second = await openDatabase({ schema: two, shards: 3 });
  expect(first.id).not.toBe(second.id);
  await first.log.append(0, 1, await newEpoch(one, 0), bytes("a"));
  expect(await second.log.last(0)).toBe(0);
});
