import type { Eventually } from "./eventually.ts";
import type { TimeBudget } from "./time-budget.ts";

/** One change of a key-value store: a put, or a delete if the value is null. */
export interface WriteOperation {
  /** ASCII, some hundred bytes at most. */
  readonly key: string;
  /** The bytes of the value: usually some kilobytes; a large value of a state may take megabytes. */
  readonly value: Buffer | null;
}

export type KeyValueEntry = readonly [key: string, value: Buffer];

/** A range of keys, from `gte` (inclusive) to `lt` (exclusive), in the order of their bytes. */
export interface ScanRange {
  readonly gte: string;
  readonly lt: string;
  /** Reads from the last key to the first. */
  readonly reverse?: boolean;
  /** Entries at most. Absent: all. */
  readonly limit?: number;
}

/**
 * An ordered key-value store, which is all that Heddle needs of a database: the storage (threads, runs, checkpoints, events, assistants,
 * crons, the store's items) is built on it.
 *
 * One process writes to it at a time. A read that begins after a batch has resolved MUST see that batch; a read that begins while a batch
 * is in flight sees all of the batch or nothing. After values were passed to the store, neither it nor the caller may change them.
 *
 * Every failure MUST be a ServiceError: `journal.damaged` when the store knows that its bytes are not what was written,
 * `storage.unavailable` otherwise, also while it is closed.
 *
 * The members with a question mark are optional. Backup (`heddle backup`), repair, the check of tables at the start, the size on the disk
 * and the memory of the cache work on LevelDB's files: for another store, use its own tools; these figures are absent.
 */
export interface KeyValueStore {
  /** Optional: set before `open`. Long scans of an in-process store should check it after each entry, so that they yield to other work. */
  budget?: TimeBudget | undefined;
  /** Opens the store, also again after a close: everything stored before MUST be there. */
  open(): Promise<void>;
  /**
   * Reads a value. An in-process store should return the value itself, so that a read costs no turn; a store over a network returns a
   * promise. Promises may resolve in any order. MUST throw or reject while the store is closed. `isSlow`: the value is known to take long
   * to read, because it is large, or stored beside a large one. Then an in-process store should read it in another thread, so that the
   * event loop is free.
   */
  get(key: string, isSlow?: boolean): Eventually<Buffer | undefined>;
  /**
   * Stores all of `ops` or none; for the same key, the later one wins. With `sync`, resolves when they would survive a power cut, and with
   * them every batch before; without, when they would survive the end of the process. Of batches in flight together, no two change the
   * same key.
   */
  batch(ops: readonly WriteOperation[], options: { readonly sync: boolean }): Promise<void>;
  /**
   * The entries at one point in time, which is not before the call. MUST end only at the end of the range, and reject when it cannot
   * continue.
   */
  entries(range: ScanRange): AsyncIterable<KeyValueEntry>;
  /** Like {@link entries}, but only keys, in pages. The first page should come soon, for callers that need only a small number. */
  keys(range: ScanRange): AsyncIterable<readonly string[]>;
  /** Optional: the unfiltered store, of a store that hides quarantined data from readers. */
  readonly unguarded?: KeyValueStore;
  /**
   * Optional: called after a failed write. Rejects while another write would surely fail, so that the store stays open for reading. Absent
   * when that cannot be known.
   */
  probe?(): Promise<void>;
  /** Closes the store when all batches have resolved. MUST do nothing when it is closed. */
  close(): Promise<void>;
}
