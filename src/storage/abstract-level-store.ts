import type { AbstractLevel } from "abstract-level";
import { ServiceError } from "../model/errors.ts";
import type { Eventually } from "../ports/eventually.ts";
import type { TimeBudget, BudgetShare } from "../ports/time-budget.ts";
import type { KeyValueEntry, KeyValueStore, WriteOperation, ScanRange } from "../ports/key-value-store.ts";
import { FairSemaphore } from "../ports/fair-semaphore.ts";

type Db = AbstractLevel<Buffer | Uint8Array | string, string, Buffer>;

/** The most entries that are fetched from the database at a time. */
const MAX_PAGE_ENTRIES = 512;
/**
 * The number of keys that the first fetch of a scan gets, a little more than a page of a list has. Each further fetch doubles the number,
 * up to {@link MAX_PAGE_ENTRIES}.
 */
const FIRST_PAGE_KEYS = 48;
/**
 * Bytes of keys that are fetched at a time. Only LevelDB has this option: it fetches in another thread, so a few large fetches cost less
 * than many small ones.
 */
const FETCH_BYTES = 64 * 1024;

/**
 * How many of the four threads of Node's pool may read at once. The other two stay free for writes, so that the start or the end of a run
 * is not stored only after reads of 14 MB blocks.
 */
const MAX_POOL_READS = 2;
/** How many large values may be in memory at once while they are read and decoded. */
const MAX_SLOW_READS = 2;

const tenantOf = (key: string): string => key.slice(0, key.indexOf("/") + 1);

/** The common part of the stores over `abstract-level` databases. Each subclass opens its own kind of database. */
export abstract class AbstractLevelStore<D extends Db> implements KeyValueStore {
  budget: TimeBudget | undefined;
  protected db: D | undefined;
  readonly #poolReads = new FairSemaphore(MAX_POOL_READS);
  readonly #slowReads = new FairSemaphore(MAX_SLOW_READS);

  abstract open(): Promise<void>;

  get(key: string): Buffer | undefined;
  get(key: string, isSlow?: boolean): Eventually<Buffer | undefined>;
  get(key: string, isSlow = false): Eventually<Buffer | undefined> {
    if (isSlow) return this.#getSlow(key);
    try {
      return this.#opened().getSync(key);
    } catch (cause) {
      throw readError(cause);
    }
  }

  /**
   * Reads a large value in another thread. LevelDB takes 10 to 40 ms to read 14 MB; only the copy of the value, about 4 ms, blocks the
   * event loop.
   */
  async #getSlow(key: string): Promise<Buffer | undefined> {
    const tenant = tenantOf(key);
    try {
      return await this.#slowReads.run(tenant, async () => {
        const value = await this.#poolReads.run(tenant, () => this.#opened().get(key));
        // The caller decodes the value, which blocks the event loop for about as long as the copy.
        await this.budget?.share(tenant).next();
        return value;
      });
    } catch (cause) {
      throw readError(cause);
    }
  }

  async batch(ops: readonly WriteOperation[], options: { readonly sync: boolean }): Promise<void> {
    try {
      await this.write(this.#opened(), ops, options);
    } catch (cause) {
      throw storageUnavailableError("a write failed", cause);
    }
  }

  protected abstract write(
    db: D,
    ops: readonly WriteOperation[],
    options: { readonly sync: boolean },
  ): Promise<void>;

  async *entries(range: ScanRange): AsyncGenerator<KeyValueEntry> {
    const share = this.#share(range);
    const tenant = tenantOf(range.gte);
    const iterator = this.#open(() => this.#opened().iterator({ ...range }));
    try {
      for (;;) {
        // LevelDB stops a fetch after 16 KiB, so a page may be short. Only an empty page is the end.
        const page = await this.#poolReads.run(tenant, () => iterator.nextv(MAX_PAGE_ENTRIES));
        if (page.length === 0) return;
        for (const entry of page) {
          yield entry;
          if (share?.isSpent(entry[1].length) === true) await share.next();
        }
      }
    } catch (cause) {
      throw readError(cause);
    } finally {
      await iterator.close();
    }
  }

  async *keys(range: ScanRange): AsyncGenerator<readonly string[]> {
    const share = this.#share(range);
    const tenant = tenantOf(range.gte);
    const options = { highWaterMarkBytes: FETCH_BYTES, ...range };
    const iterator = this.#open(() => this.#opened().keys(options));
    try {
      for (let size = FIRST_PAGE_KEYS; ; size = Math.min(2 * size, MAX_PAGE_ENTRIES)) {
        const page = await this.#poolReads.run(tenant, () => iterator.nextv(size));
        if (page.length === 0) return;
        yield page;
        if (share?.isSpent() === true) await share.next();
      }
    } catch (cause) {
      throw readError(cause);
    } finally {
      await iterator.close();
    }
  }

  async close(): Promise<void> {
    const { db } = this;
    if (db === undefined) return;
    await db.close();
  }

  #open<I>(open: () => I): I {
    try {
      return open();
    } catch (cause) {
      throw readError(cause);
    }
  }

  /** The part of the time budget that belongs to the tenant whose keys are read. Each key begins with its tenant. */
  #share({ gte }: ScanRange): BudgetShare | undefined {
    return this.budget?.share(tenantOf(gte));
  }

  #opened(): D {
    if (this.db === undefined || this.db.status !== "open")
      throw storageUnavailableError("it is closed", undefined);
    return this.db;
  }
}

/**
 * The error for a storage that cannot be used; a cause that is a `ServiceError` is returned unchanged. The cause is only logged and not
 * sent to clients, because LevelDB's messages contain absolute paths.
 */
export function storageUnavailableError(what: string, cause: unknown): ServiceError {
  if (cause instanceof ServiceError) return cause;
  if (isDiskFull(cause)) return diskFullError(cause);
  return new ServiceError("storage.unavailable", `The storage is not available: ${what}`, { cause });
}

/** The error for a full disk. As in {@link storageUnavailableError}, the cause is only logged. */
export const diskFullError = (cause: unknown): ServiceError =>
  new ServiceError(
    "storage.unavailable",
    "The disk of the data is full: free some space, and send the request again",
    { cause },
  );

/**
 * True if an error, or one of its causes, is a full disk or an exceeded disk quota. LevelDB reports this only as text:
 * `IO error: <file>: No space left on device`.
 */
export function isDiskFull(cause: unknown): boolean {
  for (let one = cause; one instanceof Error; one = one.cause) {
    const { code } = one as NodeJS.ErrnoException;
    if (code === "ENOSPC" || code === "EDQUOT") return true;
    if (code === "LEVEL_IO_ERROR" && DISK_FULL.test(one.message)) return true;
  }
  return false;
}

/** The texts of ENOSPC and EDQUOT on Linux and macOS, and of the corresponding error on Windows. */
const DISK_FULL = /no space left on device|disk quota exceeded|not enough space on the disk/i;

/** Converts the error of a failed read: to `journal.damaged` if a checksum was wrong, otherwise to `storage.unavailable`. */
function readError(cause: unknown): ServiceError {
  if (cause instanceof ServiceError) return cause;
  const { code } = cause as { code?: unknown };
  if (code === "LEVEL_CORRUPTION") {
    return new ServiceError("journal.damaged", "The storage holds a damaged block", { cause });
  }
  return storageUnavailableError("a read failed", cause);
}
