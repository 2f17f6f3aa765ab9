import { randomBytes } from "node:crypto";
import {
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Logger } from "../../src/ports/logger.ts";
import { LevelDbKeyValueStore } from "../../src/storage/leveldb-key-value-store.ts";
import { openStorage, type Storage } from "../../src/storage/open-storage.ts";
import { all, threadKey, Writer } from "./samples.ts";
import { deps, temporary } from "./support.ts";

const THREADS = 50;

let room: ReturnType<typeof temporary>;
let errors: string[];
let opened: Storage[];

beforeEach(() => {
  room = temporary();
  errors = [];
  opened = [];
});
afterEach(async () => {
  for (const storage of opened) await storage.close();
  room.remove();
});

async function open(isVerified = false): Promise<Storage> {
  const logger: Logger = { ...deps.logger, error: (line) => void errors.push(line) };
  const storage = await openStorage({ kind: "level", directory: room.path, isVerified }, { ...deps, logger });
  opened.push(storage);
  return storage;
}

async function close(): Promise<void> {
  await opened.pop()?.close();
}

/** A copy of the directory that was filled first: each append waits for the disk. */
let filled: ReturnType<typeof temporary> | undefined;
afterAll(() => filled?.remove());

/** Stores threads whose records are all in tables, which a start has verified. */
async function fill(): Promise<void> {
  if (filled === undefined) {
    await store();
    filled = temporary();
    cpSync(room.path, filled.path, { recursive: true });
  } else cpSync(filled.path, room.path, { recursive: true });
  for (const table of tables()) utimesSync(table, 1_700_000_000, 1_700_000_000);
  const storage = await open();
  expect(storage.verifying()).toBeUndefined();
  await close();
}

async function store(): Promise<void> {
  const { journal } = await open();
  for (let n = 0; n < THREADS; n++) {
    const one = new Writer(() => journal, threadKey(n));
    for (let m = 0; m < 20; m++) await one.append();
  }
  await close();
  const kv = new LevelDbKeyValueStore(join(room.path, "level"), true);
  await kv.open();
  await kv.compact();
  await kv.close();
}

function tables(): readonly string[] {
  const database = join(room.path, "level");
  return readdirSync(database)
    .filter((name) => name.endsWith(".ldb"))
    .map((name) => join(database, name));
}

/**
 * Flips a bit in the middle of each table, as a failing disk would: the modification time of the file stays the same.
 */
function rot(): void {
  for (const table of tables()) {
    const { atime, mtime } = statSync(table);
    const bytes = readFileSync(table);
    const at = bytes.length >> 1;
    bytes[at] = (bytes[at] ?? 0) ^ 1;
    writeFileSync(table, bytes);
    utimesSync(table, atime, mtime);
  }
}

async function until(isSo: () => boolean): Promise<void> {
  for (let n = 0; n < 500 && !isSo(); n++) await sleep(10);
  expect(isSo()).toBe(true);
}

describe("tables that were verified before", () => {
  test("are verified behind the start, which tells how much is left", async () => {
    await fill();
    const storage = await open();
    const bytes = tables().reduce((sum, table) => sum + statSync(table).size, 0);
    expect(bytes).toBeGreaterThan(0);
    expect(storage.verifying()).toEqual({ tables: tables().length, bytes });
    await until(() => storage.verifying() === undefined);
    expect(storage.damage()).toEqual({ threads: 0, keys: 0, ranges: 0 });
  });

  test("and have rotted since come into quarantine as soon as that is found, also what is remembered of them", async () => {
    await fill();
    rot();
    const storage = await open();
    const served = (): readonly number[] =>
      Array.from({ length: THREADS }, (_, n) => n).filter((n) => {
        try {
          return storage.journal.thread(threadKey(n)) !== undefined;
        } catch {
          return false;
        }
      });
    served();
    await until(() => storage.damage().ranges > 0);
    expect(storage.findings()).toMatchObject([{ what: expect.stringContaining("wrong checksum") as string }]);
    expect(errors.join()).toContain("wrong checksum");
    const left = served();
    expect(left.length).toBeGreaterThan(0);
    expect(left.length).toBeLessThan(THREADS);
    const refused = new Set((await all(storage.refusedThreads())).map(({ thread }) => thread));
    expect(refused.size).toBe(THREADS - left.length);
    // The next start reads the tables again, and requires a repair.
    await close();
    await expect(open()).rejects.toMatchObject({ code: "journal.damaged" });
  });

  test("are read by a check", async () => {
    await fill();
    rot();
    await expect(open(true)).rejects.toMatchObject({ code: "journal.damaged" });
  });

  test("and were written to since are read at the start", async () => {
    await fill();
    rot();
    for (const table of tables()) utimesSync(table, 1_700_000_001, 1_700_000_001);
    await expect(open()).rejects.toMatchObject({ code: "journal.damaged" });
  });

  test("are all read at the start where what was noted of them is lost or torn", async () => {
    await fill();
    rot();
    const note = join(room.path, "tables.json");
    writeFileSync(note, readFileSync(note, "utf8").slice(0, -5));
    await expect(open()).rejects.toMatchObject({ code: "journal.damaged" });
    rmSync(note);
    await expect(open()).rejects.toMatchObject({ code: "journal.damaged" });
  });
});

/** How often a verifier has looked for new tables. */
let searches = 0;

/** Opens the storage with a verifier that hardly waits between two looks. */
async function openHasty(): Promise<Storage> {
  const note = (line: string): void => void errors.push(line);
  const logger: Logger = { ...deps.logger, error: note, warn: note };
  const scheduler = {
    ...deps.scheduler,
    after: (ms: number, task: () => void) => {
      if (ms >= 10_000) searches++;
      return deps.scheduler.after(Math.min(ms, 5), task);
    },
  };
  const storage = await openStorage({ kind: "level", directory: room.path }, { ...deps, logger, scheduler });
  opened.push(storage);
  return storage;
}

/** Writes so much that LevelDB makes new tables. */
async function writeTables({ journal }: Storage): Promise<void> {
  const one = new Writer(() => journal, threadKey(THREADS));
  for (let n = 0; n < 12; n++) {
    await one.append({ thread: { metadata: { blob: randomBytes(3_000_000).toString("base64") } } });
  }
}

describe("files beside the database that cannot be written, as on a full disk", () => {
  test("damaged data are refused even so, and recorded as soon as that is possible", async () => {
    await fill();
    rot();
    const obstacle = join(room.path, "damage.json.tmp");
    mkdirSync(obstacle);
    const storage = await openHasty();
    await until(() => storage.damage().ranges > 0);
    expect(errors.join()).toContain("wrong checksum");
    expect(storage.findings()).toEqual([]);
    const { ranges } = storage.damage();
    const before = searches;
    await until(() => searches > before + 2);
    // Each is logged once, however often it is found.
    expect(errors).toEqual([...new Set(errors)]);
    expect(storage.damage().ranges).toBe(ranges);
    rmSync(obstacle, { recursive: true });
    await until(() => storage.findings().length > 0);
  });

  test("the storage is closed, and can be opened again", async () => {
    await fill();
    const storage = await openHasty();
    mkdirSync(join(room.path, "tables.json.tmp"));
    await writeTables(storage);
    await until(() => errors.includes("tables could not be verified"));
    await close();
    await expect(storage.check()).rejects.toMatchObject({ code: "storage.unavailable" });
    rmSync(join(room.path, "tables.json.tmp"), { recursive: true });
    const again = await open();
    expect(again.journal.thread(threadKey(THREADS))).toBeDefined();
  });
});

test("tables that LevelDB writes are verified while it is open: the next start need not read them", async () => {
  await fill();
  const storage = await openHasty();
  const before = tables();
  await writeTables(storage);
  const noted = (): readonly string[] =>
    Object.keys(JSON.parse(readFileSync(join(room.path, "tables.json"), "utf8")) as object);
  const isNew = (name: string): boolean => !before.some((table) => table.endsWith(name));
  await until(() => noted().some(isNew));
  expect(noted().filter(isNew).length).toBeGreaterThan(0);
});
