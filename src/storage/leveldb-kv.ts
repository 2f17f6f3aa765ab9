import { existsSync, readdirSync, readFileSync } from "node:fs";
import { open as openFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { ClassicLevel } from "classic-level";
import { Level } from "level";
import { ServiceError } from "../model/errors.ts";
import { AbstractKv } from "./abstract-kv.ts";
import type { Op } from "./kv.ts";

type Db = Level<string, Buffer>;

/**
 * Bytes of the log that LevelDB keeps in memory as well before it writes a table. With twice as much, tables are merged half as
 * often; the log is read again when a server starts after a crash, 20 ms a megabyte, so no more than this.
 */
const WRITE_BUFFER = 32 * 1024 * 1024;
/** Bytes of a block of a table. Of 4 KiB, LevelDB's own size, merging tables takes almost twice the time. */
const BLOCK = 8 * 1024;
const CACHE = 64 * 1024 * 1024;
/** What opening after a failure may have to write: the log as a table. */
const ROOM = WRITE_BUFFER;

/**
 * A batch by what abstract-level asks of those who implement it (its manual, "Private API"): keys and values as they are stored.
 * Its public methods look up encodings and copy each operation, which took as long as handing it over; an array of
 * operations takes twice as long as that.
 */
interface NativeBatch {
  _put(key: string, value: Buffer): void;
  _del(key: string): void;
  _write(options: { readonly sync: boolean }): Promise<void>;
}

/** LevelDB in a directory. MUST be opened once at a time: see `lock.ts`. */
export class LevelKv extends AbstractKv<Db> {
  readonly #directory: string;
  /** Has there been a database here? Then one that cannot be found is damage, not a new beginning. */
  readonly #existing: boolean;

  /** `existing`: refuse to make a new database. */
  constructor(directory: string, existing: boolean) {
    super();
    this.#directory = directory;
    this.#existing = existing || hasTables(directory);
  }

  async open(): Promise<void> {
    const current = join(this.#directory, "CURRENT");
    const manifest = existsSync(current) ? readFileSync(current, "latin1").trim() : undefined;
    if (
      manifest !== undefined &&
      (manifest === "" || !existsSync(join(this.#directory, manifest.replaceAll("\0", "?"))))
    ) {
      throw new ServiceError(
        "journal.damaged",
        `The file CURRENT of the database in ${this.#directory} names no manifest that is there; run "heddle repair" to rebuild it`,
      );
    }
    // LevelDB would make an empty database over the tables of one that has lost this file.
    if (this.#mustExist() && !existsSync(join(this.#directory, "CURRENT"))) {
      throw new ServiceError(
        "journal.damaged",
        `The database in ${this.#directory} has lost its file CURRENT; run "heddle repair" to rebuild it`,
      );
    }
    const db: Db = new Level(this.#directory, {
      keyEncoding: "utf8",
      valueEncoding: "buffer",
      createIfMissing: !this.#mustExist(),
      writeBufferSize: WRITE_BUFFER,
      cacheSize: CACHE,
      blockSize: BLOCK,
    });
    try {
      await db.open();
    } catch (cause) {
      throw openError(this.#directory, cause);
    }
    this.db = db;
  }

  /** Merges all tables: those of a repair overlap, and lookups would find whichever has the highest number. */
  async compact(): Promise<void> {
    const { db } = this;
    if (db instanceof ClassicLevel) await db.compactRange("", "~");
  }

  /** Bytes of memory that LevelDB counts of its own: its cache of blocks, and what its log holds. 0 while it is closed. */
  memory(): number {
    const { db } = this;
    // What `level` is in Node.
    if (!(db instanceof ClassicLevel) || db.status !== "open") return 0;
    return Number(db.getProperty("leveldb.approximate-memory-usage"));
  }

  #mustExist(): boolean {
    return this.#existing || this.db !== undefined;
  }

  protected async write(db: Db, ops: readonly Op[], options: { readonly sync: boolean }): Promise<void> {
    const batch = db.batch();
    const native = batch as unknown as NativeBatch;
    // oxlint-disable no-underscore-dangle
    for (const { key, value } of ops) {
      if (value === null) native._del(key);
      else native._put(key, value);
    }
    try {
      await native._write(options);
      // oxlint-enable no-underscore-dangle
    } finally {
      await batch.close();
    }
  }

  /** A full disk stays full for a while: found out by a file of our own, since closing would end the reads. */
  async probe(): Promise<void> {
    const path = join(this.#directory, "..", "probe.tmp");
    try {
      const file = await openFile(path, "w");
      try {
        const piece = Buffer.alloc(1024 * 1024);
        for (let done = 0; done < ROOM; done += piece.length) await file.write(piece);
        await file.datasync();
      } finally {
        await file.close();
      }
    } finally {
      await rm(path, { force: true });
    }
  }
}

function hasTables(directory: string): boolean {
  return existsSync(directory) && readdirSync(directory).some((name) => /\.(ldb|sst)$|^MANIFEST/.test(name));
}

function openError(directory: string, thrown: unknown): ServiceError {
  const cause = thrown instanceof Error && thrown.cause instanceof Error ? thrown.cause : thrown;
  const { code, message } = cause as { code?: unknown; message?: unknown };
  if (code === "LEVEL_LOCKED") {
    return new ServiceError("storage.locked", `Another process has the database in ${directory} open`, {
      cause,
    });
  }
  if (code === "LEVEL_CORRUPTION") {
    return new ServiceError(
      "journal.damaged",
      `The database in ${directory} cannot be opened: ${String(message)}; run "heddle repair" to rebuild it`,
      { cause },
    );
  }
  return new ServiceError(
    "storage.unavailable",
    `The database in ${directory} cannot be opened: ${String(message)}`,
    { cause },
  );
}

/** Rebuilds what LevelDB can find out by its tables and logs. MUST NOT be called while it is open. */
export async function repairLevel(directory: string): Promise<void> {
  try {
    await ClassicLevel.repair(directory);
  } catch (cause) {
    throw openError(directory, cause);
  }
}
