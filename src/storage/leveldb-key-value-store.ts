import { existsSync, readdirSync, readFileSync } from "node:fs";
import { open as openFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { ClassicLevel } from "classic-level";
import { Level } from "level";
import { ServiceError } from "../model/errors.ts";
import { AbstractLevelStore, storageUnavailableError } from "./abstract-level-store.ts";
import type { KeyValueStore, ReplaceableKeyValueStore, WriteOperation } from "../ports/key-value-store.ts";

type Db = Level<string, Buffer>;

/**
 * The size of the log, in bytes, at which LevelDB writes the log as a table. Until then, the content of the log is also in memory. The size
 * is a compromise: with a larger log, tables are merged less often, but the start after a crash takes longer. Twice the size halves the
 * merges; reading the log takes 20 ms per megabyte.
 */
const WRITE_BUFFER_BYTES = 32 * 1024 * 1024;
/** The size of a block in a table, in bytes. With LevelDB's default of 4 KiB, merging tables takes almost twice the time. */
const BLOCK_BYTES = 8 * 1024;
/**
 * The size of LevelDB's block cache in bytes; 0 turns the cache off. A large value is a block of its own, and each of the cache's 16 parts
 * may keep one: with states of 15 MiB, 240 MiB that nobody reads any more. Without a cache, a read takes only 0.7 µs more, because tables
 * are in the system's page cache.
 */
const CACHE_BYTES = 0;
/** The disk space in bytes that opening the database after a failure may need: LevelDB then writes its log as a table. */
const REOPEN_BYTES = WRITE_BUFFER_BYTES;

/**
 * Methods of a batch in abstract-level's private API, which take keys and values in their stored form. The public methods also look up
 * encodings and copy each operation, which doubles the time of writing a batch. For an array of operations, it triples the time.
 */
interface NativeBatch {
  _put(key: string, value: Buffer): void;
  _del(key: string): void;
  _write(options: { readonly sync: boolean }): Promise<void>;
}

/** The method of abstract-level's private interface that takes an array of operations. */
interface NativeDb {
  _batch(
    ops: readonly { readonly type: "put" | "del"; readonly key: string; readonly value?: Buffer }[],
    options: { readonly sync: boolean },
  ): Promise<void>;
}

/**
 * A batch with more bytes of values than this is passed as an array. LevelDB's copy of an array is freed as soon as the batch is written.
 * The copy of a {@link NativeBatch} is freed only by the garbage collector, which does not know its size.
 */
const LARGE_BATCH_BYTES = 256 * 1024;

/** A LevelDB database in a directory. It MUST NOT be opened twice at the same time: see `directory-lock.ts`. */
export class LevelDbKeyValueStore extends AbstractLevelStore<Db> implements ReplaceableKeyValueStore {
  readonly #directory: string;
  /** True if the directory must contain a database. If it contains none, {@link open} reports damage and creates no new database. */
  readonly #existing: boolean;

  /** `existing`: if true, {@link open} refuses to create a new database. */
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
    // LevelDB would create an empty database over the tables of a database that has lost its `CURRENT` file.
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
      writeBufferSize: WRITE_BUFFER_BYTES,
      cacheSize: CACHE_BYTES,
      blockSize: BLOCK_BYTES,
    });
    try {
      await db.open();
    } catch (cause) {
      throw openError(this.#directory, cause);
    }
    this.db = db;
  }

  /** Fills a new database in a directory beside this database, and then moves it to this database's directory. */
  async replace(fill: (empty: KeyValueStore) => Promise<void>): Promise<void> {
    await this.removeLeftovers();
    const { made, former } = besides(this.#directory);
    try {
      const fresh = new LevelDbKeyValueStore(made, false);
      await fresh.open();
      try {
        await fill(fresh);
      } finally {
        await fresh.close();
      }
      // When LevelDB opens a database, it writes its log as a table, and syncs the table. After this, a power cut loses nothing.
      await fresh.open();
      await fresh.close();
    } catch (error) {
      await rm(made, { recursive: true, force: true });
      throw error;
    }
    await this.close();
    try {
      // Two steps, because a directory cannot be renamed to one that exists. If the process ends between the two, no database is at this
      // path.
      await rename(this.#directory, former);
      await rename(made, this.#directory);
    } catch (cause) {
      throw storageUnavailableError("the database could not be replaced", cause);
    }
    await this.open();
    await rm(former, { recursive: true, force: true });
  }

  /**
   * Deletes the directories that a {@link replace} left behind because its process ended early. MUST NOT be called while another process
   * uses the directory.
   */
  async removeLeftovers(): Promise<void> {
    const { made, former } = besides(this.#directory);
    for (const path of [made, former]) await rm(path, { recursive: true, force: true });
  }

  /** Merges all tables. Called after a repair: the tables then overlap, and lookups would use the table with the highest number. */
  async compact(): Promise<void> {
    const { db } = this;
    if (db instanceof ClassicLevel) await db.compactRange("", "~");
  }

  /** The bytes of memory that LevelDB reports for its log buffers; 0 while it is closed. */
  memory(): number {
    const { db } = this;
    // In Node, `level` is a ClassicLevel.
    if (!(db instanceof ClassicLevel) || db.status !== "open") return 0;
    return Number(db.getProperty("leveldb.approximate-memory-usage"));
  }

  #mustExist(): boolean {
    return this.#existing || this.db !== undefined;
  }

  protected async write(
    db: Db,
    ops: readonly WriteOperation[],
    options: { readonly sync: boolean },
  ): Promise<void> {
    let bytes = 0;
    for (const { value } of ops) bytes += value?.length ?? 0;
    if (bytes > LARGE_BATCH_BYTES) {
      const entries = ops.map(({ key, value }) =>
        value === null ? ({ type: "del", key } as const) : ({ type: "put", key, value } as const),
      );
      // oxlint-disable-next-line no-underscore-dangle -- a method of abstract-level's private API
      return (db as unknown as NativeDb)._batch(entries, options);
    }
    const batch = db.batch();
    const native = batch as unknown as NativeBatch;
    // oxlint-disable no-underscore-dangle -- methods of abstract-level's private API
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

  /**
   * Checks whether the disk is still full, by writing a separate file. The database itself would have to be closed and opened again before
   * a write, which interrupts reads.
   */
  async probe(): Promise<void> {
    const path = join(this.#directory, "..", "probe.tmp");
    try {
      const file = await openFile(path, "w");
      try {
        const piece = Buffer.alloc(1024 * 1024);
        for (let done = 0; done < REOPEN_BYTES; done += piece.length) await file.write(piece);
        await file.datasync();
      } finally {
        await file.close();
      }
    } finally {
      await rm(path, { force: true });
    }
  }
}

/**
 * The directories beside `directory` that a replacement of its database uses: for the new database, and for the former one until it is
 * deleted.
 */
const besides = (directory: string): { readonly made: string; readonly former: string } => ({
  made: `${directory}.new`,
  former: `${directory}.old`,
});

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

/** Rebuilds the database from its tables and logs. MUST NOT be called while the database is open. */
export async function rebuildLevelDb(directory: string): Promise<void> {
  try {
    await ClassicLevel.repair(directory);
  } catch (cause) {
    throw openError(directory, cause);
  }
}
