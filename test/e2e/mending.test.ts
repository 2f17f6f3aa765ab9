import { join } from "node:path";
import { Client } from "@langchain/langgraph-sdk";
import { expect, test } from "vitest";
import { check, repair } from "../../src/cli/maintenance.ts";
import { graph, list } from "../../src/index.ts";
import { isTerminal } from "../../src/model/run.ts";
import { encodeWithChecksum, decodeWithChecksum } from "../../src/storage/checksum-envelope.ts";
import {
  RUN_ENDS_COMPLETE_KEY,
  journalEntryKey,
  threadRecordKey,
  runKey,
  threadPrefix,
  prefixRange,
} from "../../src/storage/keys.ts";
import { LevelDbKeyValueStore } from "../../src/storage/leveldb-key-value-store.ts";
import { openStorage } from "../../src/storage/open-storage.ts";
import { type JournalEntry, runRowConverter, threadRowConverter } from "../../src/storage/stored-records.ts";
import { deps } from "../storage/support.ts";
import { directory, serve, type Server } from "./support/server.ts";

const work = graph({
  state: { log: list<string>() },
  nodes: {
    work: async (_, ctx) => {
      ctx.emit({ token: 1 });
      return { log: ["done"] };
    },
  },
  edges: { start: "work" },
});
const broken = graph({
  state: { log: list<string>() },
  nodes: {
    work: async () => {
      throw new RangeError("out of range");
    },
  },
  edges: { start: "work" },
});
const graphs = { work, broken };

interface Made {
  readonly thread: string;
  readonly run: string;
}

async function aRun(client: Client, assistant: string): Promise<Made> {
  const { thread_id: thread } = await client.threads.create();
  const { run_id: run } = await client.runs.create(thread, assistant, { input: {}, streamMode: "custom" });
  await client.runs.join(thread, run).catch(() => undefined);
  return { thread, run };
}

/** Overwrites a run's end with its earlier record, as a stop of an older version did. */
async function damage(data: string, runs: readonly (Made & { readonly cancel?: true })[]): Promise<void> {
  const kv = new LevelDbKeyValueStore(join(data, "level"), true);
  await kv.open();
  for (const { thread, run, cancel } of runs) {
    const key = { tenant: "_", thread };
    const prefix = threadPrefix(key);
    const read = (at: string) => decodeWithChecksum(kv.get(at) as Buffer, key, at);
    const record = runRowConverter.record(read(runKey(prefix, run)));
    expect(isTerminal(record.status)).toBe(true);
    const before = { status: "pending", error: null, ended_at: null, next_event: 0 } as const;
    const left = { ...record, ...before, cancel: cancel ? ("interrupt" as const) : null, parked: 1 };
    const head = threadRowConverter.record(read(threadRecordKey(prefix)));
    const seq = head.seq + 1;
    const entry: JournalEntry = { kind: "left", epoch: head.epoch, runs: [run] };
    await kv.batch(
      [
        { key: threadRecordKey(prefix), value: encodeWithChecksum(threadRowConverter.row({ ...head, seq })) },
        { key: journalEntryKey(prefix, seq), value: encodeWithChecksum(entry) },
        { key: runKey(prefix, run), value: encodeWithChecksum(runRowConverter.row(left, "kwargs", null)) },
      ],
      { sync: true },
    );
  }
  await kv.batch([{ key: RUN_ENDS_COMPLETE_KEY, value: null }], { sync: true });
  await kv.close();
}

/** Removes the run's end from a thread's journal. */
async function forgetEnd(data: string, { thread, run }: Made): Promise<void> {
  const kv = new LevelDbKeyValueStore(join(data, "level"), true);
  await kv.open();
  const key = { tenant: "_", thread };
  for await (const [at, bytes] of kv.entries(prefixRange(`${threadPrefix(key)}j/`))) {
    const entry = decodeWithChecksum(bytes, key, at) as JournalEntry;
    if (entry.kind !== "settled" || !entry.runs?.includes(run)) continue;
    await kv.batch([{ key: at, value: encodeWithChecksum({ kind: "advanced", epoch: entry.epoch }) }], {
      sync: true,
    });
  }
  await kv.close();
}

async function findings(data: string): Promise<string[]> {
  const lines: string[] = [];
  await check(data, (line) => lines.push(line));
  return lines;
}

async function statuses(client: Client, runs: readonly Made[]): Promise<string[]> {
  return Promise.all(runs.map(async ({ thread, run }) => (await client.runs.get(thread, run)).status));
}

const told = ({ complaints }: Server) =>
  complaints.filter((line) => line.includes("had left without an end"));

/**
 * Four runs as an older version left them: one succeeded, one failed, one was cancelled, and of one nothing shows how
 * it ended.
 */
async function damagedData(): Promise<{ readonly data: string; readonly runs: readonly Made[] }> {
  const data = await directory();
  const app = await serve({ data, graphs });
  const client = new Client({ apiUrl: app.url });
  const runs = [
    await aRun(client, "work"),
    await aRun(client, "broken"),
    await aRun(client, "work"),
    await aRun(client, "work"),
  ] as const;
  const whole = await aRun(client, "work");
  await app.close();
  await damage(data, [runs[0], runs[1], { ...runs[2], cancel: true }, runs[3]]);
  await forgetEnd(data, runs[3]);
  expect((await findings(data)).filter((line) => line.includes("has gone past it"))).toHaveLength(4);
  return { data, runs: [...runs, whole] };
}

const ENDS = ["success", "error", "interrupted", "error", "success"];

test("runs that an older version left without an end, although their threads went on, end at the next start", async () => {
  const { data, runs } = await damagedData();
  const [first, failed, , unknown] = runs as readonly [Made, Made, Made, Made];
  const app = await serve({ data, graphs });
  const client = new Client({ apiUrl: app.url, callerOptions: { maxRetries: 0 } });
  // Waiting clients and readers are notified of the end.
  expect(await client.runs.join(first.thread, first.run)).toMatchObject({ log: ["done"] });
  const events: unknown[] = [];
  for await (const event of client.runs.joinStream(first.thread, first.run, { lastEventId: "-1" }))
    events.push(event);
  expect(events).toContainEqual(expect.objectContaining({ event: "custom", data: { token: 1 } }));
  await expect.poll(() => statuses(client, runs)).toEqual(ENDS);
  await client.runs.cancel(first.thread, first.run);
  expect(await client.runs.list(first.thread)).toMatchObject([{ status: "success" }]);
  expect(await statuses(client, runs)).toEqual(ENDS);
  await expect.poll(() => told(app)).toHaveLength(1);
  expect(JSON.parse(told(app)[0] ?? "")).toMatchObject({ success: 1, error: 2, interrupted: 1 });
  await app.close();
  expect(await findings(data)).toEqual([`${data} is whole`]);
  const storage = await openStorage({ kind: "level", directory: data }, deps);
  const errors = [failed, unknown].map(
    async ({ thread, run }) => (await storage.journal.run({ tenant: "_", thread }, run))?.error?.message,
  );
  expect(await Promise.all(errors)).toEqual([
    "out of range",
    expect.stringContaining("how it ended is not known"),
  ]);
  // Later starts do not search again.
  expect(storage.lostRunEnds.areNone).toBe(true);
  await storage.close();
}, 30_000);

test("a new store needs no look for such runs; one that an older version has written does", async () => {
  const data = await directory();
  const areNone = async (): Promise<boolean> => {
    const storage = await openStorage({ kind: "level", directory: data }, deps);
    await storage.close();
    return storage.lostRunEnds.areNone;
  };
  expect(await areNone()).toBe(true);
  await damage(data, []);
  expect(await areNone()).toBe(false);
  // The search starts at once, in the background.
  const app = await serve({ data });
  await app.close();
  expect(await areNone()).toBe(true);
  expect(app.complaints).toEqual([]);
});

test("a repair gives such runs their ends", async () => {
  const { data, runs } = await damagedData();
  await repair(data);
  expect(await findings(data)).toEqual([`${data} is whole`]);
  const app = await serve({ data, graphs });
  expect(await statuses(new Client({ apiUrl: app.url }), runs)).toEqual(ENDS);
  expect(told(app)).toEqual([]);
}, 30_000);
