import { deepEqual, equal, rejects } from "node:assert/strict";
import type { LogEntry, ShardLog } from "../ports/shard-log.ts";
import { defineContract } from "./contract.ts";

/** A log under test, with at least three empty shards: 0, 1 and 2. */
export interface ShardLogHarness {
  readonly log: ShardLog;
  /** The log under test, as another node of the cluster accesses it. */
  readonly other: ShardLog;
  /** Gives a shard a new epoch, and returns the epoch. Called before the first append to a shard. */
  newEpoch(shard: number): Promise<number>;
}

const LIMIT_BYTES = 1024 * 1024;
const FENCED = { name: "ServiceError", code: "log.fenced" };
const TRIMMED = { name: "ServiceError", code: "log.trimmed" };

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const show = (entries: readonly LogEntry[]): string[] =>
  entries.map(({ seq, epoch, batch }) => `${seq}@${epoch}=${new TextDecoder().decode(batch)}`);

/** Appends entries with the texts `1`, `2`, ... */
async function fill({ log }: ShardLogHarness, shard: number, epoch: number, count: number): Promise<void> {
  for (let seq = 1; seq <= count; seq++) await log.append(shard, seq, epoch, bytes(String(seq)));
}

/** The contract of every {@link ShardLog}. */
export const shardLogContract = defineContract<ShardLogHarness>({
  "an empty log has no entries": async ({ log }) => {
    equal(await log.last(0), 0);
    deepEqual(await log.read(0, 1, LIMIT_BYTES), []);
    await log.trim(0, 5);
    equal(await log.last(0), 0);
  },

  "gives back what was appended, also through another node": async (harness) => {
    const { log, other } = harness;
    const epoch = await harness.newEpoch(0);
    await fill(harness, 0, epoch, 3);
    const all = [1, 2, 3].map((seq) => `${seq}@${epoch}=${seq}`);
    for (const one of [log, other]) {
      equal(await one.last(0), 3);
      deepEqual(show(await one.read(0, 1, LIMIT_BYTES)), all);
      deepEqual(show(await one.read(0, 3, LIMIT_BYTES)), all.slice(2));
      deepEqual(await one.read(0, 4, LIMIT_BYTES), []);
    }
  },

  "keeps batches of any bytes and of any length, also none": async (harness) => {
    const epoch = await harness.newEpoch(0);
    const batches = [
      new Uint8Array(0),
      Uint8Array.from({ length: 512 }, (_, i) => i % 256),
      Uint8Array.from({ length: 3_000_000 }, (_, i) => (i * 7) % 251),
    ];
    for (const [i, batch] of batches.entries()) await harness.log.append(0, i + 1, epoch, batch);
    const found: LogEntry[] = [];
    while (found.length < batches.length) {
      found.push(...(await harness.other.read(0, found.length + 1, LIMIT_BYTES)));
    }
    for (const [i, batch] of batches.entries())
      equal(Buffer.compare(batch, found[i]?.batch ?? bytes("none")), 0);
  },

  "shards are separate": async (harness) => {
    const { log } = harness;
    const first = await harness.newEpoch(0);
    const second = await harness.newEpoch(1);
    await log.append(0, 1, first, bytes("a"));
    await log.append(1, 1, second, bytes("b"));
    deepEqual(show(await log.read(0, 1, LIMIT_BYTES)), [`1@${first}=a`]);
    deepEqual(show(await log.read(1, 1, LIMIT_BYTES)), [`1@${second}=b`]);
    equal(await log.last(2), 0);
  },

  "a read stops before the limit, but returns at least one entry": async (harness) => {
    const { log } = harness;
    const epoch = await harness.newEpoch(0);
    for (let seq = 1; seq <= 5; seq++) await log.append(0, seq, epoch, new Uint8Array(1000));
    const lengths = async (limit: number): Promise<number[]> =>
      (await log.read(0, 2, limit)).map(({ seq }) => seq);
    deepEqual(await lengths(1), [2]);
    deepEqual(await lengths(1_999), [2]);
    deepEqual(await lengths(2_000), [2, 3]);
    deepEqual(await lengths(100_000), [2, 3, 4, 5]);
  },

  "a long log is read to its end": async (harness) => {
    const epoch = await harness.newEpoch(0);
    await fill(harness, 0, epoch, 300);
    const found: string[] = [];
    for (;;) {
      const entries = await harness.other.read(0, found.length + 1, 400);
      if (entries.length === 0) break;
      found.push(...show(entries));
    }
    deepEqual(
      found,
      Array.from({ length: 300 }, (_, i) => `${i + 1}@${epoch}=${i + 1}`),
    );
  },

  "refuses an append at a position that is taken, whoever appends": async (harness) => {
    const { log, other } = harness;
    const epoch = await harness.newEpoch(0);
    await fill(harness, 0, epoch, 2);
    for (const one of [log, other]) {
      await rejects(one.append(0, 1, epoch, bytes("x")), FENCED);
      await rejects(one.append(0, 2, epoch, bytes("2")), FENCED);
    }
    deepEqual(show(await log.read(0, 1, LIMIT_BYTES)), [`1@${epoch}=1`, `2@${epoch}=2`]);
  },

  "refuses an append that would leave a gap": async (harness) => {
    const { log } = harness;
    const epoch = await harness.newEpoch(0);
    await rejects(log.append(0, 2, epoch, bytes("x")), FENCED);
    await log.append(0, 1, epoch, bytes("1"));
    await rejects(log.append(0, 3, epoch, bytes("x")), FENCED);
    equal(await log.last(0), 1);
  },

  "of appends at one position at the same time, one is stored": async (harness) => {
    const { log, other } = harness;
    const epoch = await harness.newEpoch(0);
    for (let seq = 1; seq <= 5; seq++) {
      const tries = Array.from({ length: 8 }, (_, i) => `${seq}.${i}`);
      const results = await Promise.allSettled(
        tries.map((text, i) => (i % 2 === 0 ? log : other).append(0, seq, epoch, bytes(text))),
      );
      const stored = tries.filter((_, i) => results[i]?.status === "fulfilled");
      equal(stored.length, 1);
      for (const result of results) {
        if (result.status === "rejected") equal((result.reason as { code?: unknown }).code, FENCED.code);
      }
      deepEqual(show(await log.read(0, seq, LIMIT_BYTES)), [`${seq}@${epoch}=${stored[0]}`]);
    }
  },

  "refuses every epoch but the shard's, even at a free position": async (harness) => {
    const { log, other } = harness;
    const before = await harness.newEpoch(0);
    await log.append(0, 1, before, bytes("1"));
    const now = await harness.newEpoch(0);
    equal(now > before, true);
    await rejects(log.append(0, 2, before, bytes("late")), FENCED);
    await rejects(log.append(0, 2, now + 1, bytes("early")), FENCED);
    await other.append(0, 2, now, bytes("2"));
    await rejects(log.append(0, 3, before, bytes("late")), FENCED);
    deepEqual(show(await log.read(0, 1, LIMIT_BYTES)), [`1@${before}=1`, `2@${now}=2`]);
  },

  "a new epoch of one shard leaves the others as they are": async (harness) => {
    const first = await harness.newEpoch(0);
    await harness.newEpoch(1);
    await harness.newEpoch(1);
    await harness.log.append(0, 1, first, bytes("1"));
    equal(await harness.log.last(0), 1);
  },

  "trimming deletes what is below a position": async (harness) => {
    const { log, other } = harness;
    const epoch = await harness.newEpoch(0);
    await fill(harness, 0, epoch, 20);
    await log.trim(0, 15);
    await log.trim(0, 3);
    deepEqual(show(await other.read(0, 15, 2)), [`15@${epoch}=15`]);
    for (const from of [1, 14]) await rejects(other.read(0, from, LIMIT_BYTES), TRIMMED);
    equal(await other.last(0), 20);
    await other.append(0, 21, epoch, bytes("21"));
    await other.trim(0, 16);
    await rejects(log.read(0, 15, LIMIT_BYTES), TRIMMED);
    deepEqual(show(await log.read(0, 20, LIMIT_BYTES)), [`20@${epoch}=20`, `21@${epoch}=21`]);
  },

  "trimming keeps the last entry": async (harness) => {
    const { log } = harness;
    const epoch = await harness.newEpoch(0);
    await fill(harness, 0, epoch, 3);
    await log.trim(0, 100);
    equal(await log.last(0), 3);
    deepEqual(show(await log.read(0, 3, LIMIT_BYTES)), [`3@${epoch}=3`]);
    await log.append(0, 4, epoch, bytes("4"));
    await rejects(log.read(0, 2, LIMIT_BYTES), TRIMMED);
  },

  "a trimmed position stays taken": async (harness) => {
    const { log } = harness;
    const epoch = await harness.newEpoch(0);
    await fill(harness, 0, epoch, 10);
    await log.trim(0, 8);
    for (const seq of [1, 7, 8]) await rejects(log.append(0, seq, epoch, bytes("x")), FENCED);
    await log.append(0, 11, epoch, bytes("11"));
  },

  "the extent is that of the entries from a position on": async (harness) => {
    const { log, other } = harness;
    deepEqual(await log.extent(0, 1), { first: 1, last: 0, bytes: 0 });
    const epoch = await harness.newEpoch(0);
    for (let seq = 1; seq <= 10; seq++) await log.append(0, seq, epoch, new Uint8Array(seq));
    deepEqual(await other.extent(0, 1), { first: 1, last: 10, bytes: 55 });
    deepEqual(await other.extent(0, 10), { first: 10, last: 10, bytes: 10 });
    deepEqual(await other.extent(0, 11), { first: 11, last: 10, bytes: 0 });
    await log.trim(0, 6);
    deepEqual(await other.extent(0, 1), { first: 6, last: 10, bytes: 40 });
    deepEqual(await other.extent(1, 1), { first: 1, last: 0, bytes: 0 });
  },

  "a long log of large batches is trimmed as far as it is told": async (harness) => {
    const { log } = harness;
    const epoch = await harness.newEpoch(0);
    const batch = new Uint8Array(3_000_000);
    for (let seq = 1; seq <= 8; seq++) await log.append(0, seq, epoch, batch);
    await log.trim(0, 8);
    deepEqual(await log.extent(0, 1), { first: 8, last: 8, bytes: batch.length });
  },

  "trimming one shard leaves the others as they are": async (harness) => {
    for (const shard of [0, 1]) await fill(harness, shard, await harness.newEpoch(shard), 5);
    await harness.log.trim(0, 5);
    equal((await harness.log.read(1, 1, LIMIT_BYTES)).length, 5);
  },

  "appends go on while a log is trimmed and read": async (harness) => {
    const { log, other } = harness;
    const epoch = await harness.newEpoch(0);
    await fill(harness, 0, epoch, 100);
    const appended = (async () => {
      for (let seq = 101; seq <= 140; seq++) await log.append(0, seq, epoch, bytes(String(seq)));
    })();
    for (let below = 10; below <= 90; below += 20) await other.trim(0, below);
    await appended;
    deepEqual(
      (await other.read(0, 90, LIMIT_BYTES)).map(({ seq }) => seq),
      Array.from({ length: 51 }, (_, i) => i + 90),
    );
  },
});
