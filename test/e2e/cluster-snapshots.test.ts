import type { Client } from "@langchain/langgraph-sdk";
import { Client as PostgresClient } from "pg";
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { build, heddle, Running } from "../config/process.ts";
import { connect, Home } from "../config/project.ts";
import { type PostgresServer, startPostgres } from "../postgres/postgres-server.ts";

const LEASE_MS = 1_000;
/** Bytes of the log after which a snapshot is made: those of a few runs. */
const SNAPSHOT_BYTES = 65_536;
// Each test starts several nodes, one after the other.
vi.setConfig({ testTimeout: 120_000 });
const home = new Home({ isInstalled: true });
let postgres: PostgresServer;
let database: PostgresClient;
beforeAll(async () => {
  [postgres] = await Promise.all([startPostgres(), build()]);
  database = new PostgresClient(postgres.url);
  await database.connect();
}, 120_000);
afterAll(async () => {
  home.remove();
  await database.end();
  await postgres.remove();
});

const config = home.project("snapshots", {
  "heddle.json": { graphs: { note: "./graphs.ts:note" } },
  "graphs.ts": `
import { graph, list } from "heddle";

export const note = graph({
  state: { notes: list() },
  nodes: { write: async ({ notes }) => ({ notes: [notes.length + " " + "x".repeat(8_000)] }) },
  edges: { start: "write" },
});
`,
  "package.json": { type: "module" },
});

/** Starts the only node of a cluster of one shard. */
async function start(schema: string, data: string): Promise<Running> {
  const args = `--config ${config} --data ${home.data(data)} --node a --cluster ${postgres.url} --shards 1`;
  const env = {
    HEDDLE_CLUSTER_SECRET: "a secret of a cluster, long enough for it",
    HEDDLE_CLUSTER_SCHEMA: schema,
    HEDDLE_CLUSTER_LEASE: String(LEASE_MS),
    HEDDLE_CLUSTER_SNAPSHOT: String(SNAPSHOT_BYTES),
  };
  const node = await Running.start(args.split(" "), env, () => undefined);
  onTestFinished(async ({ task }) => {
    if (task.result?.state === "fail") process.stderr.write(`node on ${data}:\n${node.output}`);
    await node.stop("SIGKILL");
  });
  return node;
}

const status = (schema: string) =>
  heddle(["cluster", "status", "--cluster", postgres.url], { env: { HEDDLE_CLUSTER_SCHEMA: schema } });

/** The threads and how many notes each has. */
type Notes = Map<string, number>;

async function write(client: Client, notes: Notes, count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    // oxlint-disable-next-line no-await-in-loop -- one after the other
    const { thread_id } = await client.threads.create();
    notes.set(thread_id, 0);
    const threads = [...notes.keys()].slice(-3);
    for (const id of threads) {
      // oxlint-disable-next-line no-await-in-loop -- as above
      await client.runs.wait(id, "note", { input: {} });
      notes.set(id, (notes.get(id) ?? 0) + 1);
    }
  }
}

async function expectAll(client: Client, notes: Notes): Promise<void> {
  expect(await client.threads.count()).toBe(notes.size);
  for (const [id, count] of notes) {
    // oxlint-disable-next-line no-await-in-loop -- in order
    const { values } = await client.threads.getState<{ notes: string[] }>(id);
    expect(values.notes.map((one) => Number(one.split(" ")[0]))).toEqual(
      Array.from({ length: count }, (_, i) => i),
    );
  }
}

/** The positions of the complete snapshots, from the newest on, and of the first entry of the log. */
async function stored(
  schema: string,
): Promise<{ readonly snapshots: readonly number[]; readonly first: number }> {
  const { rows } = await database.query<{ seq: string }>(
    `SELECT seq FROM ${schema}.snapshots WHERE parts IS NOT NULL ORDER BY seq DESC`,
  );
  const { rows: log } = await database.query<{ first: string }>(
    `SELECT min(seq) AS first FROM ${schema}.log`,
  );
  return { snapshots: rows.map(({ seq }) => Number(seq)), first: Number(log[0]?.first) };
}

/** Waits until the log is trimmed behind the older one of two snapshots, which is after a position. */
async function trimmedBehind(schema: string, seq: number): Promise<void> {
  await expect
    .poll(
      async () => {
        const { snapshots, first } = await stored(schema);
        return snapshots.length === 2 && first === snapshots[1] && first > seq;
      },
      { timeout: 30_000 },
    )
    .toBe(true);
}

const lastOf = async (schema: string): Promise<number> => {
  const { rows } = await database.query<{ last: string }>(`SELECT max(seq) AS last FROM ${schema}.log`);
  return Number(rows[0]?.last);
};

test("a killed node on an empty directory starts from a snapshot; so does one with an old directory; both have everything", async () => {
  const schema = "snapped";
  const notes: Notes = new Map();
  const first = await start(schema, "first");
  await write(connect(first), notes, 2);
  expect(await first.stop()).toBe(0);
  const old = await lastOf(schema);

  const second = await start(schema, "second");
  const client = connect(second);
  await write(client, notes, 12);
  await trimmedBehind(schema, old + 1);
  expect(status(schema).stdout).toMatch(
    /shard 0: node a, epoch \d+, \d+ entries in the log up to \d+ \([\d.]+ MB\), snapshot at \d+ \([\d.]+ MB, 0 min old\)\n/,
  );
  const metrics = await (await fetch(`${second.url}/metrics`)).text();
  for (const name of ["log_bytes", "log_entries", "log_position", "snapshot_bytes", "snapshot_position"])
    expect(metrics).toMatch(new RegExp(`heddle_cluster_${name}\\{shard="0",node="a"\\} [1-9]`));
  expect(metrics).toMatch(/heddle_cluster_snapshots_total\{result="made",shard="0",node="a"\} [1-9]/);
  expect(metrics).toMatch(/heddle_cluster_snapshots_total\{result="failed",shard="0",node="a"\} 0\n/);
  await second.stop("SIGKILL");

  for (const data of ["empty", "first"]) {
    const next = await start(schema, data);
    await next.printed("the database is filled from a snapshot");
    await expectAll(connect(next), notes);
    await write(connect(next), notes, 1);
    await next.stop("SIGKILL");
  }
  // The node that was killed has the log's last entries, or the log reaches back to them.
  const again = await start(schema, "second");
  await expectAll(connect(again), notes);
});

test("a snapshot with a part missing is not used: the one before is; without any, the node is refused with the reason", async () => {
  const schema = "torn";
  const notes: Notes = new Map();
  const first = await start(schema, "torn-first");
  await write(connect(first), notes, 10);
  await trimmedBehind(schema, 1);
  await first.stop("SIGKILL");
  const newest = `SELECT id FROM ${schema}.snapshots WHERE parts IS NOT NULL ORDER BY seq DESC LIMIT 1`;
  const torn = await database.query(
    `DELETE FROM ${schema}.snapshot_parts WHERE snapshot = (${newest}) AND part = 0`,
  );
  expect(torn.rowCount).toBe(1);

  const second = await start(schema, "torn-second");
  await second.printed("a snapshot cannot be used");
  await second.printed("the database is filled from a snapshot", 2);
  await expectAll(connect(second), notes);
  // It gives its lease up, so that the next one takes the shard before it serves.
  expect(await second.stop()).toBe(0);

  await database.query(`UPDATE ${schema}.snapshot_parts SET bytes = '\\x00'`);
  await expect(start(schema, "torn-third")).rejects.toThrow(
    /none can be used: (?=.*has no part 0)(?=.*wrong checksum)/,
  );
  // Its own data need no snapshot.
  const again = await start(schema, "torn-second");
  await expectAll(connect(again), notes);
});

test("what a killed node has left of a snapshot is never used, and is deleted", async () => {
  const schema = "ended";
  const notes: Notes = new Map();
  const first = await start(schema, "ended-first");
  await write(connect(first), notes, 3);
  await first.stop("SIGKILL");
  // As a node leaves it that is killed in the middle: a snapshot without its number of parts.
  const { rows } = await database.query<{ id: string }>(
    `INSERT INTO ${schema}.snapshots (shard, seq) SELECT 0, max(seq) FROM ${schema}.log RETURNING id`,
  );
  const left = [rows[0]?.id];
  await database.query(`INSERT INTO ${schema}.snapshot_parts VALUES ($1, 0, 'half')`, left);

  const second = await start(schema, "ended-second");
  const client = connect(second);
  await expectAll(client, notes);
  await write(client, notes, 8);
  const leftover = () => database.query(`SELECT FROM ${schema}.snapshot_parts WHERE snapshot = $1`, left);
  await expect.poll(async () => (await leftover()).rowCount, { timeout: 30_000 }).toBe(0);
  await expectAll(client, notes);
});
