import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
  statSync,
  truncateSync,
  utimesSync,
} from "node:fs";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import { Packr } from "msgpackr";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { eventModes } from "../../src/model/run-event.ts";
import { unpackValue } from "../../src/codec/value-encoding.ts";
import { encodeWithChecksum } from "../../src/storage/checksum-envelope.ts";
import { ALL_KEYS, FORMAT_KEY, threadIdKey } from "../../src/storage/keys.ts";
import type { WriteOperation } from "../../src/ports/key-value-store.ts";
import { LevelDbKeyValueStore } from "../../src/storage/leveldb-key-value-store.ts";
import { MemoryKeyValueStore } from "../../src/storage/memory-key-value-store.ts";
import {
  acceptDamage,
  backupStorage,
  openStorage,
  repairStorage,
  type Storage,
} from "../../src/storage/open-storage.ts";
import { aCheckpoint, all, aRun, id, set, someEvents, threadKey, Writer } from "./samples.ts";
import { deps, temporary } from "./support.ts";

/** Length and checksum before each value. */
const HEAD = 8;
const packr = new Packr({ useRecords: false });

let room: ReturnType<typeof temporary>;
beforeEach(() => {
  room = temporary();
});
afterEach(() => room.remove());

const open = (directory = room.path): Promise<Storage> => openStorage({ kind: "level", directory }, deps);

/**
 * The kinds of facts that versions with each storage format can read. A line never changes: add a new one for a new
 * format.
 */
const FACT_KINDS: Readonly<Record<number, readonly string[]>> = {
  7: [
    "start",
    "checkpoint",
    "task",
    "result",
    "interrupt",
    "custom",
    "event",
    "log",
    "message",
    "token",
    "piece",
    "complete",
    "error",
  ],
  8: [
    "start",
    "checkpoint",
    "task",
    "result",
    "interrupt",
    "custom",
    "event",
    "tool",
    "log",
    "message",
    "token",
    "piece",
    "complete",
    "error",
  ],
};

test("a new kind of fact has a new storage format, because older versions cannot read it", async () => {
  await (await open()).close();
  const { format } = JSON.parse(readFileSync(join(room.path, "heddle.json"), "utf8")) as { format: number };
  expect(Object.keys(eventModes).toSorted()).toEqual(FACT_KINDS[format]?.toSorted());
});

async function filled(): Promise<Writer[]> {
  const storage = await open();
  const writers = Array.from({ length: 50 }, (_, n) => new Writer(() => storage.journal, threadKey(n)));
  await Promise.all(writers.map((one) => one.append()));
  await storage.close();
  return writers;
}

/** A value as format 3 stored it: plain MessagePack. */
function sealOlder(value: unknown): Buffer {
  const payload = Buffer.concat([Buffer.of(1), packr.pack(value)]);
  const head = Buffer.alloc(HEAD);
  head.writeUInt32LE(payload.length, 0);
  head.writeUInt32LE(crc32(payload), 4);
  return Buffer.concat([head, payload]);
}

describe("the format", () => {
  test.each([2, 9])("another one, %i, is refused, and nothing is changed", async (format) => {
    const kv = new MemoryKeyValueStore();
    await kv.open();
    await kv.batch([{ key: FORMAT_KEY, value: encodeWithChecksum(format) }], { sync: true });
    const opened = openStorage({ kind: "key-value", store: kv }, deps);
    await expect(opened).rejects.toMatchObject({
      code: "storage.version",
      message: expect.stringContaining(`format ${format}`) as string,
    });
    await kv.open();
    expect(kv.get(FORMAT_KEY)?.equals(encodeWithChecksum(format))).toBe(true);
  });

  test("the one before is read as it is, and is this one from then on", async () => {
    const first = await open();
    const one = new Writer(() => first.journal, threadKey(1));
    const run = aRun(one.key, 1, { attempt: 1 });
    await one.append();
    await one.start(run, { events: someEvents(run.run_id, 0, 2) });
    await one.append({ checkpoints: [aCheckpoint(1, null, { x: set(id(7)) }, { run_id: run.run_id })] });
    await first.close();
    const kv = new LevelDbKeyValueStore(join(room.path, "level"), true);
    await kv.open();
    const older: WriteOperation[] = [];
    for await (const [key, bytes] of kv.entries(ALL_KEYS)) {
      older.push({ key, value: sealOlder(key === FORMAT_KEY ? 3 : unpackValue(bytes, HEAD)) });
    }
    await kv.batch(older, { sync: true });
    await kv.close();
    writeFileSync(join(room.path, "heddle.json"), '{ "format": 3 }\n');
    const storage = await open();
    const { journal } = storage;
    expect(journal.thread(one.key)).toEqual(one.record);
    expect(journal.run(one.key, run.run_id)).toEqual(run);
    expect(await journal.events(one.key, run.run_id, -1, 9)).toEqual([someEvents(run.run_id, 0, 2)]);
    const again = new Writer(() => journal, one.key, one.record);
    await again.append({ checkpoints: [aCheckpoint(2, 1, { y: set(2) }, { run_id: run.run_id })] });
    const [newer, old] = await journal.history(one.key, { ns: "", limit: 9 });
    expect(newer && (await journal.values(one.key, newer))).toEqual({ x: id(7), y: 2 });
    expect(old).toMatchObject({ id: id(1), run_id: run.run_id, metadata: { made: 1 } });
    expect(await all(journal.verify())).toEqual([]);
    await storage.close();
    expect(readFileSync(join(room.path, "heddle.json"), "utf8")).toBe('{ "format": 8 }\n');
    await kv.open();
    expect(kv.get(FORMAT_KEY)?.equals(encodeWithChecksum(8))).toBe(true);
    await kv.close();
  });

  test.each([3, 4, 5, 6, 7])(
    "an older one, %i, is raised to this one, which older versions refuse",
    async (format) => {
      const kv = new MemoryKeyValueStore();
      await kv.open();
      await kv.batch([{ key: FORMAT_KEY, value: encodeWithChecksum(format) }], { sync: true });
      const storage = await openStorage({ kind: "key-value", store: kv }, deps);
      expect((await kv.get(FORMAT_KEY))?.equals(encodeWithChecksum(8))).toBe(true);
      await storage.close();
    },
  );

  test("the one of a data directory is refused before its database is touched", async () => {
    writeFileSync(join(room.path, "heddle.json"), '{ "format": 99 }');
    await expect(open()).rejects.toMatchObject({ code: "storage.version" });
    expect(existsSync(join(room.path, "level"))).toBe(false);
    for (const text of ["", "null", "{}", '{ "format": "1" }', "no json"]) {
      writeFileSync(join(room.path, "heddle.json"), text);
      await expect(open()).rejects.toMatchObject({ code: "storage.version" });
    }
  });

  test("data of something else are refused", async () => {
    const kv = new MemoryKeyValueStore();
    await kv.open();
    await kv.batch([{ key: "somebody", value: Buffer.from("else") }], { sync: true });
    await expect(openStorage({ kind: "key-value", store: kv }, deps)).rejects.toMatchObject({
      code: "storage.version",
    });
  });

  test("a refused open lets go of the directory", async () => {
    writeFileSync(join(room.path, "heddle.json"), '{ "format": 99 }');
    await expect(open()).rejects.toMatchObject({ code: "storage.version" });
    rmSync(join(room.path, "heddle.json"));
    await (await open()).close();
  });
});

describe("a data directory whose heddle.json is damaged", () => {
  const marker = () => join(room.path, "heddle.json");

  test.each(["", "null", "{}", '{ "format": "1" }', '{ "for\0\0\0', "[4]"])(
    "(%j) is refused, which names the file and what helps; repair writes it anew",
    async (text) => {
      const writers = await filled();
      writeFileSync(marker(), text);
      const message = `${marker()} is damaged; run "heddle repair" to write it anew`;
      await expect(open()).rejects.toMatchObject({
        code: "storage.version",
        message: expect.stringContaining(message),
      });
      await repairStorage(room.path, deps);
      expect(readFileSync(marker(), "utf8")).toBe('{ "format": 8 }\n');
      const storage = await open();
      for (const one of writers) expect(await storage.journal.thread(one.key)).toEqual(one.record);
      expect(await all(storage.journal.verify())).toEqual([]);
      await storage.close();
    },
  );

  test.each([
    ["is of another format", [{ key: FORMAT_KEY, value: encodeWithChecksum(99) }], "format 99"],
    ["is not ours", [{ key: "somebody", value: Buffer.from("else") }], "its format cannot be told"],
    ["is empty", [], "its format cannot be told"],
  ] as const)("stays as it is where the database %s", async (_, ops, why) => {
    const kv = new LevelDbKeyValueStore(join(room.path, "level"), false);
    await kv.open();
    await kv.batch([...ops], { sync: true });
    await kv.close();
    writeFileSync(marker(), "{");
    await expect(repairStorage(room.path, deps)).rejects.toMatchObject({
      code: "storage.version",
      message: expect.stringContaining(why),
    });
    expect(readFileSync(marker(), "utf8")).toBe("{");
  });

  test.each([
    ["opened", () => open()],
    ["repaired", () => repairStorage(room.path, deps)],
    ["accepted", () => acceptDamage(room.path, deps)],
  ])(
    "is not one that holds a project's configuration: that is not %s, and stays as it is",
    async (_, act) => {
      const configuration = JSON.stringify({ graphs: { agent: "./agent.ts:default" } });
      writeFileSync(marker(), configuration);
      await expect(act()).rejects.toMatchObject({
        code: "config.invalid",
        message: `The data directory ${room.path} holds a configuration file, heddle.json; choose a directory of its own, such as ${join(room.path, ".heddle")}`,
      });
      expect(readFileSync(marker(), "utf8")).toBe(configuration);
      expect(readdirSync(room.path)).toEqual(["heddle.json"]);
    },
  );

  test("its losses are not accepted before it is repaired", async () => {
    await filled();
    writeFileSync(marker(), "");
    await expect(acceptDamage(room.path, deps)).rejects.toMatchObject({ code: "storage.version" });
  });
});

describe("a database that is lost", () => {
  test("is never replaced by an empty one; repair brings it back", async () => {
    const writers = await filled();
    rmSync(join(room.path, "level", "CURRENT"));
    const refused = {
      code: "journal.damaged",
      message: expect.stringContaining('"heddle repair"') as string,
    };
    await expect(open()).rejects.toMatchObject(refused);
    // The same when Heddle's own marker is missing as well.
    rmSync(join(room.path, "heddle.json"));
    await expect(open()).rejects.toMatchObject(refused);
    await repairStorage(room.path, deps);
    const storage = await open();
    for (const one of writers) expect(await storage.journal.thread(one.key)).toEqual(one.record);
    expect(await all(storage.journal.verify())).toEqual([]);
    await storage.close();
  });

  test("its index of threads is repaired with it", async () => {
    const writers = await filled();
    const kv = new LevelDbKeyValueStore(join(room.path, "level"), true);
    await kv.open();
    const drop = writers.map(({ key }) => ({ key: threadIdKey(key), value: null }));
    await kv.batch(drop, { sync: true });
    await kv.close();
    await repairStorage(room.path, deps);
    const storage = await open();
    expect(await all(storage.journal.verify())).toEqual([]);
    expect(await storage.catalog.countThreads("_", { status: "idle" })).toBe(writers.length);
    await storage.close();
  });

  test("is not made anew where there has been one", async () => {
    await filled();
    rmSync(join(room.path, "level"), { recursive: true });
    await expect(open()).rejects.toMatchObject({ code: "journal.damaged" });
  });

  test("a broken MANIFEST is named, not passed over", async () => {
    await filled();
    writeFileSync(join(room.path, "level", "CURRENT"), "MANIFEST-999999\n");
    await expect(open()).rejects.toMatchObject({
      message: expect.stringContaining(room.path) as string,
    });
  });

  test("repair is refused while the directory is open", async () => {
    const storage = await open();
    await expect(repairStorage(room.path, deps)).rejects.toMatchObject({ code: "storage.locked" });
    await storage.close();
  });
});

describe("a stretch of the log that LevelDB drops without a word", () => {
  const [one, two] = [threadKey(1), threadKey(2)];

  /** A log in which one thread's appends precede the other's, with a flipped bit in one of the first. */
  async function damage(): Promise<void> {
    const storage = await open();
    for (const key of [one, two]) {
      const writer = new Writer(() => storage.journal, key);
      for (let n = 0; n < 400; n++) await writer.append();
    }
    await storage.close();
    const database = join(room.path, "level");
    const log = readdirSync(database).find((name) => name.endsWith(".log")) ?? "";
    const bytes = readFileSync(join(database, log));
    const place = Math.floor(bytes.length / 4);
    bytes[place] = (bytes[place] ?? 0) ^ 1;
    writeFileSync(join(database, log), bytes);
  }

  test("is reported, its threads are not served, and all others are; after the next start, too", async () => {
    await damage();
    for (let starts = 0; starts < 2; starts++) {
      const storage = await open();
      expect(storage.damage()).toEqual({ threads: 1, keys: 0, ranges: 0 });
      expect(storage.findings()).toMatchObject([
        { what: expect.stringMatching(/^\d+ batches between \d+ and \d+ are missing/) as string },
      ]);
      expect(() => storage.journal.thread(one)).toThrow(expect.objectContaining({ code: "journal.damaged" }));
      await expect(storage.journal.runs(one, { limit: 1, offset: 0 })).rejects.toMatchObject({
        code: "journal.damaged",
      });
      await expect(new Writer(() => storage.journal, one).append()).rejects.toMatchObject({
        code: "journal.damaged",
      });
      expect(await storage.journal.thread(two)).toMatchObject({ seq: 400 });
      expect(await all(storage.journal.verify())).toMatchObject([{ key: one }]);
      await storage.close();
    }
  });

  test("is warned of by each start, with the count and the place to look, until it is accepted", async () => {
    await damage();
    const warnings: unknown[] = [];
    const logger = { ...deps.logger, warn: (...line: unknown[]) => void warnings.push(line) };
    const start = async () => {
      const options = { kind: "level", directory: room.path } as const;
      await (await openStorage(options, { ...deps, logger })).close();
      return warnings.splice(0);
    };
    const counts = { findings: 1, threads: 1, keys: 0, ranges: 0, file: join(room.path, "damage.json") };
    const warned = [[expect.stringContaining('"heddle check" lists it'), counts]];
    expect(await start()).toEqual(warned);
    expect(await start()).toEqual(warned);
    await acceptDamage(room.path, deps);
    expect(await start()).toEqual([]);
  });

  test("is accepted once: the thread is served as it is stored", async () => {
    await damage();
    expect(await acceptDamage(room.path, deps)).toMatchObject([{ touches: [`_/t/${one.thread}/`] }]);
    const storage = await open();
    expect(storage.damage()).toEqual({ threads: 0, keys: 0, ranges: 0 });
    expect(await storage.journal.thread(one)).toMatchObject({ seq: 400 });
    await storage.close();
    expect(await acceptDamage(room.path, deps)).toEqual([]);
  });

  test("is anything where nothing says what it held: then nothing is served before it is accepted", async () => {
    await damage();
    rmSync(join(room.path, "batches"), { recursive: true });
    for (let starts = 0; starts < 2; starts++) {
      await expect(open()).rejects.toMatchObject({
        code: "journal.damaged",
        message: expect.stringContaining("--accept") as string,
      });
    }
    await acceptDamage(room.path, deps);
    await (await open()).close();
  });

  /** Stores some appends, and truncates the end of the log. */
  async function cutLog(): Promise<void> {
    const storage = await open();
    const writer = new Writer(() => storage.journal, one);
    for (let n = 0; n < 20; n++) await writer.append();
    await storage.close();
    const database = join(room.path, "level");
    const log = join(database, readdirSync(database).find((name) => name.endsWith(".log")) ?? "");
    truncateSync(log, statSync(log).size - 10);
  }

  test("at the end of the log is noticed as well", async () => {
    await cutLog();
    const next = await open();
    expect(next.findings()).toMatchObject([{ touches: [`_/t/${one.thread}/`] }]);
    expect(() => next.journal.thread(one)).toThrow(expect.objectContaining({ code: "journal.damaged" }));
    await next.close();
  });

  const ledger = () => join(room.path, "batches");

  test.each([
    ["missing", () => rmSync(ledger(), { recursive: true })],
    ["empty", () => readdirSync(ledger()).forEach((name) => rmSync(join(ledger(), name)))],
    ["of empty files", () => readdirSync(ledger()).forEach((name) => truncateSync(join(ledger(), name)))],
  ])(
    "at its end is not ruled out where the ledger is %s: that is reported until it is accepted",
    async (_, lose) => {
      await cutLog();
      lose();
      const found = [
        { what: expect.stringContaining("the ledger of batches (batches/) is missing or empty") },
      ];
      const errors: string[] = [];
      const logger = { ...deps.logger, error: (line: string) => void errors.push(line) };
      for (let starts = 0; starts < 2; starts++) {
        const next = await openStorage({ kind: "level", directory: room.path }, { ...deps, logger });
        expect(next.findings()).toMatchObject(found);
        expect(next.damage()).toEqual({ threads: 0, keys: 0, ranges: 0 });
        expect(await next.journal.thread(one)).toMatchObject({ seq: 19 });
        await next.close();
        expect(errors).toEqual([expect.stringContaining("the ledger of batches")]);
      }
      expect(await acceptDamage(room.path, deps)).toMatchObject(found);
      const last = await open();
      expect(last.findings()).toEqual([]);
      await last.close();
    },
  );

  test("is not suspected in a directory that was started once and holds nothing, nor in a backup, which has no ledger", async () => {
    await (await open()).close();
    const again = await open();
    expect(again.findings()).toEqual([]);
    const writer = new Writer(() => again.journal, one);
    for (let n = 0; n < 20; n++) await writer.append();
    await again.close();
    const copy = temporary();
    await backupStorage(room.path, copy.path);
    for (let starts = 0; starts < 2; starts++) {
      const copied = await open(copy.path);
      expect(copied.findings()).toEqual([]);
      expect(await copied.journal.thread(one)).toMatchObject({ seq: 20 });
      await copied.close();
    }
    copy.remove();
  });

  test("a stopped backup removes its working files; those of a killed one are removed by a later one, a day after", async () => {
    const storage = await open();
    await new Writer(() => storage.journal, one).append();
    await storage.close();
    const working = (): readonly string[] =>
      readdirSync(room.path).filter((name) => name.startsWith("backup-"));
    const copy = temporary();
    const aborter = new AbortController();
    const seen: number[] = [];
    const onProgress = () => {
      seen.push(working().length);
      aborter.abort(new Error("stopped"));
    };
    const target = join(copy.path, "first");
    await expect(backupStorage(room.path, target, { onProgress, signal: aborter.signal })).rejects.toThrow(
      "stopped",
    );
    expect(seen).toEqual([1]);
    expect(working()).toEqual([]);

    for (const [name, hours] of Object.entries({ "backup-aaaaaa": 25, "backup-bbbbbb": 1 })) {
      mkdirSync(join(room.path, name));
      const made = Date.now() / 1000 - hours * 3600;
      utimesSync(join(room.path, name), made, made);
    }
    await backupStorage(room.path, join(copy.path, "second"));
    expect(working()).toEqual(["backup-bbbbbb"]);
    copy.remove();
  });

  test("data of an earlier version, without numbers, opens, and is numbered from then on", async () => {
    const storage = await open();
    await new Writer(() => storage.journal, one).append();
    await storage.close();
    rmSync(join(room.path, "batches"), { recursive: true });
    rmSync(join(room.path, "database.json"));
    const next = await open();
    expect(next.damage()).toEqual({ threads: 0, keys: 0, ranges: 0 });
    expect(await next.journal.thread(one)).toMatchObject({ seq: 1 });
    await next.close();
  });
});

test("a directory is made where there is none", async () => {
  const directory = join(room.path, "a", "b");
  await (await open(directory)).close();
  expect(existsSync(join(directory, "heddle.json"))).toBe(true);
});

test("a directory that cannot be made is named", async () => {
  writeFileSync(join(room.path, "file"), "");
  await expect(open(join(room.path, "file", "data"))).rejects.toMatchObject({
    code: "storage.unavailable",
    message: expect.stringMatching(
      /file\/data cannot be made: .*; there is a file in its place, or in its path; choose another directory$/,
    ) as string,
  });
});

test("a directory that cannot be written to is named, with what helps", async () => {
  // Nobody can write there, not even root.
  await expect(open("/proc")).rejects.toMatchObject({
    code: "storage.unavailable",
    message: expect.stringMatching(
      /^The directory \/proc cannot be written to: .*; choose a directory that this user can write to$/,
    ) as string,
  });
});

test("an empty directory of ours, left by an open that was cut short, is a new beginning", async () => {
  mkdirSync(join(room.path, "level"));
  const storage = await open();
  expect(await all(storage.journal.unsettled())).toEqual([]);
  await storage.close();
});

test("two storages in one process share nothing", async () => {
  const one = await openStorage({ kind: "memory" }, deps);
  const two = await openStorage({ kind: "memory" }, deps);
  await new Writer(() => one.journal, threadKey(1)).append();
  expect(await two.journal.thread(threadKey(1))).toBeUndefined();
  expect(one.stats().batches).toBe(1);
  expect(two.stats().batches).toBe(0);
  await Promise.all([one.close(), two.close()]);
});

test("a closed storage refuses", async () => {
  const storage = await open();
  await storage.close();
  const one = new Writer(() => storage.journal, threadKey(1));
  await expect(one.append()).rejects.toMatchObject({ code: "storage.unavailable" });
  expect(() => storage.journal.thread(one.key)).toThrow(
    expect.objectContaining({ code: "storage.unavailable" }),
  );
});

test("what LevelDB's log and cache take grows with what is written; in memory there is neither", async () => {
  const storage = await open();
  const empty = storage.memory() ?? Number.NaN;
  const writers = Array.from({ length: 200 }, (_, n) => new Writer(() => storage.journal, threadKey(n)));
  await Promise.all(writers.map((one) => one.append()));
  expect(storage.memory()).toBeGreaterThan(empty);
  await storage.close();
  expect(storage.memory()).toBe(0);
  const forgetful = await openStorage({ kind: "memory" }, deps);
  expect(forgetful.memory()).toBeUndefined();
  await forgetful.close();
});

test("a directory is closed and opens again although nothing more can be written into it, as on a full disk", async () => {
  const warned: string[] = [];
  const logger = { ...deps.logger, warn: (message: string) => void warned.push(message) };
  const data = join(room.path, "data");
  const first = await openStorage({ kind: "level", directory: data }, { ...deps, logger });
  await new Writer(() => first.journal, threadKey(1)).append({});
  const inTheWay = join(data, "database.json.tmp");
  mkdirSync(inTheWay);
  await first.close();
  expect(warned).toEqual(["the state of the database could not be noted at its close"]);
  rmSync(inTheWay, { recursive: true });
  const second = await openStorage({ kind: "level", directory: data }, deps);
  expect(await second.journal.thread(threadKey(1))).toBeDefined();
  expect(second.findings()).toEqual([]);
  await second.close();
});
