import { TimeBudget } from "../../src/ports/time-budget.ts";
import { expect, test } from "vitest";
import { matchesThread, type ThreadFilter, threadOrders } from "../../src/model/thread-search.ts";
import { newThreadRecord, type ThreadRecord } from "../../src/model/thread.ts";
import { MemoryKeyValueStore } from "../../src/storage/memory-key-value-store.ts";
import { openStorage } from "../../src/storage/open-storage.ts";
import { raceScans } from "../../src/storage/thread-scan-race.ts";
import { ThreadIndexScans, type ScanQuery } from "../../src/storage/thread-index-scans.ts";
import { aRun, id, threadKey, Writer } from "./samples.ts";
import { deps } from "./support.ts";

const THREADS = 400;

/** A store with threads of all kinds, and a function that searches it. */
async function filled() {
  const kv = new MemoryKeyValueStore();
  const { journal } = await openStorage({ kind: "key-value", store: kv }, deps);
  const records = new Map<string, ThreadRecord>();
  for (let n = 1; n <= THREADS; n++) {
    const key = threadKey(n);
    const time = 5_000 - ((n * 7) % 250);
    const writer = new Writer(() => journal, key, {
      ...newThreadRecord(key.thread, time),
      rested_at: time + n,
    });
    const rest = (["idle", "success", "interrupted", "error"] as const)[n % 4] ?? "idle";
    // Some have more metadata members than are indexed.
    const many = n % 50 === 4 ? Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`m${i}`, i])) : {};
    const metadata = { team: `t${n % 20}`, level: n % 3, deep: { n: n % 5 }, ...many };
    await writer.append({
      thread: { rest, metadata, updated_at: time + n, state_updated_at: time + (n % 50) },
    });
    if (n % 9 === 0) {
      const thread = { active: id(1_000 + n), updated_at: 6_000 + n };
      await writer.append({ thread, runs: [aRun(key, 1_000 + n)] });
    }
    records.set(key.thread, writer.record);
  }
  return { kv, records };
}

const filters: readonly ThreadFilter[] = [
  {},
  { status: "idle" },
  { status: "busy" },
  { status: "error", metadata: { team: "t3" } },
  { metadata: { team: "t3" } },
  { metadata: { level: 1 } },
  { metadata: { level: 1, team: "t4" } },
  { metadata: { level: 1, team: "t4", deep: { n: 4 } } },
  { metadata: { deep: { n: 2 } } },
  { metadata: { team: "nobody" } },
];

test("every way to the threads that are meant finds the same page of them", async () => {
  const { kv, records } = await filled();
  const read = (thread: string) => records.get(thread);
  for (const filter of filters) {
    for (const sort_by of threadOrders) {
      for (const reverse of [false, true]) {
        const wanted: ScanQuery = { filter, sort_by, reverse, isPartial: false };
        const find = (thread: string) => {
          const record = read(thread);
          return record !== undefined && matchesThread(record, filter) ? record : undefined;
        };
        for (const page of [
          { offset: 0, limit: 10, ahead: 1_000 },
          { offset: 15, limit: 10, ahead: 0 },
          { offset: 0, limit: 0, ahead: Number.POSITIVE_INFINITY },
        ]) {
          const name = JSON.stringify({ filter, sort_by, reverse, ...page });
          const pages: (readonly string[])[] = [];
          const totals: number[] = [];
          for (const walk of new ThreadIndexScans(kv, "_", read, wanted).plan(wanted)) {
            const found = await raceScans(
              [walk],
              wanted,
              page,
              find,
              new TimeBudget(deps.clock, deps.scheduler).share(),
            );
            pages.push(found.threads.map(({ thread_id }) => thread_id));
            if (found.isAll) totals.push(found.total);
          }
          expect(pages.length, name).toBeGreaterThan(0);
          for (const one of pages) expect(one, name).toEqual(pages[0]);
          expect(new Set(totals).size, name).toBeLessThanOrEqual(1);
          if (page.limit === 0) expect(totals.length, name).toBe(pages.length);
        }
      }
    }
  }
});

/** Stores with this many threads, which searches only read. */
const stores = new Map<number, ReturnType<typeof storeOf>>();

async function storeOf(threads: number) {
  const kv = new MemoryKeyValueStore();
  const { journal } = await openStorage({ kind: "key-value", store: kv }, deps);
  const records = new Map<string, ThreadRecord>();
  const writes: Promise<void>[] = [];
  for (let n = 1; n <= threads; n++) {
    const key = threadKey(n);
    const metadata = { all: true, user: `u${n % (threads / 20)}`, deep: { few: n % (threads / 20) } };
    const rest = n % (threads / 20) === 0 ? "interrupted" : "idle";
    const writer = new Writer(() => journal, key, newThreadRecord(key.thread, n, { metadata }));
    writes.push(writer.append({ thread: { rest } }));
    records.set(key.thread, writer.record);
  }
  await Promise.all(writes);
  return { kv, records };
}

/** Counts the reads of a search over a store with this many threads. */
async function costOf(threads: number, search: Partial<ScanQuery>) {
  const store = stores.get(threads) ?? storeOf(threads);
  stores.set(threads, store);
  const { kv, records } = await store;
  const wanted: ScanQuery = { filter: {}, sort_by: "created_at", reverse: true, isPartial: false, ...search };
  let read = 0;
  const find = (thread: string) => {
    read++;
    const record = records.get(thread);
    return record !== undefined && matchesThread(record, wanted.filter) ? record : undefined;
  };
  const walks = new ThreadIndexScans(kv, "_", (thread) => records.get(thread), wanted).plan(wanted);
  const { threads: found } = await raceScans(
    walks,
    wanted,
    { offset: 0, limit: 10, ahead: 1_000 },
    find,
    new TimeBudget(deps.clock, deps.scheduler).share(),
  );
  expect(found.length).toBe(10);
  return read;
}

const flat: readonly (readonly [string, Partial<ScanQuery>])[] = [
  ["the newest", {}],
  ["the last changed", { sort_by: "updated_at" }],
  ["by id", { sort_by: "thread_id" }],
  ["by status", { sort_by: "status" }],
  ["in a common status", { filter: { status: "idle" } }],
  ["in a rare status", { filter: { status: "interrupted" } }],
  ["in a rare status, the last changed", { filter: { status: "interrupted" }, sort_by: "updated_at" }],
  ["with a rare member", { filter: { metadata: { user: "u0" } } }],
  ["with a rare member, by id", { filter: { metadata: { user: "u0" } }, sort_by: "thread_id" }],
  ["with a common member", { filter: { metadata: { all: true } }, sort_by: "updated_at" }],
  ["with a common and a rare one", { filter: { metadata: { all: true, user: "u0" } }, sort_by: "status" }],
  ["with a common one, in a rare status", { filter: { status: "interrupted", metadata: { all: true } } }],
  ["the last changed state", { sort_by: "state_updated_at" }],
];

test.each(flat)("a page of 10, %s, reads as much of 4,000 threads as of 400", async (_, search) => {
  const few = await costOf(400, search);
  const many = await costOf(4_000, search);
  // One turn for each scan that runs beside the fastest one.
  expect(many).toBeLessThanOrEqual(few + 300);
});

test("what many have, and none has both: that is told without reading them", async () => {
  const kv = new MemoryKeyValueStore();
  const { journal } = await openStorage({ kind: "key-value", store: kv }, deps);
  const records = new Map<string, ThreadRecord>();
  const writes: Promise<void>[] = [];
  // Each of the two sets is larger than what is in memory at once.
  for (let n = 1; n <= 10_000; n++) {
    const key = threadKey(n);
    const metadata = { half: n % 2, other: n % 2 === 0 };
    const writer = new Writer(() => journal, key, newThreadRecord(key.thread, n, { metadata }));
    writes.push(writer.append({}));
    records.set(key.thread, writer.record);
  }
  await Promise.all(writes);
  const filter = { metadata: { half: 1, other: true } };
  const counted = { offset: 0, limit: 0, ahead: Number.POSITIVE_INFINITY };
  for (const page of [{ offset: 0, limit: 10, ahead: 25 }, counted]) {
    let read = 0;
    const find = (thread: string) => {
      read++;
      const record = records.get(thread);
      return record !== undefined && matchesThread(record, filter) ? record : undefined;
    };
    const wanted: ScanQuery = { filter, sort_by: "created_at", reverse: true, isPartial: false };
    const walks = new ThreadIndexScans(kv, "_", (thread) => records.get(thread), wanted).plan(wanted);
    const found = await raceScans(
      walks,
      wanted,
      page,
      find,
      new TimeBudget(deps.clock, deps.scheduler).share(),
    );
    expect(found).toMatchObject({ threads: [], total: 0, isAll: true });
    expect(read).toBeLessThan(500);
  }
});
