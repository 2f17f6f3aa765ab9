import type { Eventually } from "./eventually.ts";
import type { TimeBudget } from "./time-budget.ts";

/** One change of a key-value store: a put, or a delete if the value is null. */
export interface WriteOperation {
  /** The key: ASCII text of a few hundred bytes at most. */
  readonly key: string;
  /** The value: usually some kilobytes, sometimes megabytes. Null deletes the key. */
  readonly value: Buffer | null;
}

export type KeyValueEntry = readonly [key: string, value: Buffer];

/** A range of keys, from `gte` (inclusive) to `lt` (exclusive), in the order of their bytes. */
export interface ScanRange {
  readonly gte: string;
  readonly lt: string;
  /** True: reads from the last key of the range to the first. */
  readonly reverse?: boolean;
  /** The most entries that are read; absent: all. */
  readonly limit?: number;
}

/**
 * An ordered key-value store, which is all that Heddle needs of a database: the storage (threads, runs, checkpoints,
 * events, assistants, crons, the store's items) is built on it.
 *
 * Only one process may write to it at a time. The store must ensure this itself, because Heddle locks only directories.
 * A read that begins after a batch has resolved MUST see that batch; a read that begins while a batch is in flight sees
 * all of the batch or nothing. Neither the store nor the caller may change a value after it was passed to the store.
 *
 * Every failure MUST be a ServiceError: `journal.damaged` when the store knows that its bytes are not what was written,
 * `storage.unavailable` otherwise, also while it is closed.
 *
 * The members with a question mark are optional. Backup (`heddle backup`), repair, the check of tables at the start,
 * and the metrics of disk size and cache memory work on LevelDB's files only. For another store, these metrics are
 * absent; back up and repair it with its own tools.
 */
export interface KeyValueStore {
  /**
   * Optional: Heddle sets it before it calls `open`. Long scans of an in-process store should check the budget after each entry, so that
   * they yield to other work.
   */
  budget?: TimeBudget | undefined;
  /**
   * Opens the store, also again after a close or after a failed batch: everything stored before MUST be there. A batch
   * that failed may or may not have been stored; once `open` has resolved, the batch MUST NOT be stored any more.
   */
  open(): Promise<void>;
  /**
   * Reads a value; undefined if the key is not stored. An in-process store should return the value itself, so that a read costs no turn of
   * the event loop; a store over a network returns a promise. Promises may resolve in any order. MUST throw or reject while the store is
   * closed.
   * @param isSlow true: reading will take long, because the value, or a value next to it, is large. An in-process store should then read in
   *   another thread, to keep the event loop free
   */
  get(key: string, isSlow?: boolean): Eventually<Buffer | undefined>;
  /**
   * Stores all of `ops` or none; if two have the same key, the later one wins. With `sync`, resolves when this batch and every earlier one would
   * survive a power cut; without, when the batch would survive the end of the process. The caller never has two batches in flight that change
   * the same key.
   */
  batch(ops: readonly WriteOperation[], options: { readonly sync: boolean }): Promise<void>;
  /**
   * The entries of a range, all as they were at one point in time, at or after the call. A store without snapshots has
   * to keep versions, or read the whole range at once. MUST end only at the end of the range, and reject when it cannot
   * continue.
   */
  entries(range: ScanRange): AsyncIterable<KeyValueEntry>;
  /** Like {@link entries}, but only keys, in pages. The first page should come soon, for callers that need only a small number. */
  keys(range: ScanRange): AsyncIterable<readonly string[]>;
  /** Optional, for a store that hides quarantined data from readers: the same store with nothing hidden. */
  readonly unguarded?: KeyValueStore;
  /**
   * Optional: called after a failed write, to learn whether another write may succeed. Rejects while another write would surely fail. When
   * `probe` resolves, the caller closes and opens the store; until then, the store stays open for reads.
   */
  probe?(): Promise<void>;
  /** Closes the store when all batches have resolved. MUST do nothing when the store is already closed. */
  close(): Promise<void>;
}

/** A store whose whole content can be replaced. */
export interface ReplaceableKeyValueStore extends KeyValueStore {
  /**
   * Replaces everything in the store, which MUST be open, and which is open afterwards. `fill` writes the new content into an empty store;
   * nothing else uses the store meanwhile. If `fill` rejects, `replace` rejects too, and the content has not changed. If the process ends
   * or the power fails before `replace` resolves, the store has the earlier content, no content, or all of the new content.
   */
  replace(fill: (empty: KeyValueStore) => Promise<void>): Promise<void>;
}
