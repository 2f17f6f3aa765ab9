import type { TimeBudget } from "../ports/time-budget.ts";

/** One change of the store: a put, or a delete if the value is null. */
export interface Op {
  readonly key: string;
  readonly value: Buffer | null;
}

export type Entry = readonly [key: string, value: Buffer];

/** Keys from `gte` (inclusive) to `lt` (exclusive), in byte order. */
export interface Range {
  readonly gte: string;
  readonly lt: string;
  /** Reads from the last to the first. */
  readonly reverse?: boolean;
  readonly limit?: number;
}

/**
 * An ordered key-value store, as the storage needs it: what LevelDB guarantees, no more. Keys are ASCII.
 *
 * Every failure MUST be a ServiceError: `journal.damaged` when the store knows that its bytes are not what was written,
 * `storage.unavailable` otherwise.
 */
export interface Kv {
  /** Makes scans yield to other work; without it they occupy the event loop. */
  budget?: TimeBudget | undefined;
  /** Opens the store, also again after a close: everything stored before MUST be there. */
  open(): Promise<void>;
  /** Reads a value in the same turn. MUST throw while the store is closed. */
  getSync(key: string): Buffer | undefined;
  /**
   * Stores all of `ops` or none; for the same key, the later one wins. With `sync`, resolves when they would survive a power cut; without,
   * when they would survive the end of the process.
   */
  batch(ops: readonly Op[], options: { readonly sync: boolean }): Promise<void>;
  /** The entries as of the call. MUST end only at the end of the range. */
  entries(range: Range): AsyncIterable<Entry>;
  /** Like {@link entries}, but only keys, in pages. The first page comes soon, for callers that want only a few. */
  keys(range: Range): AsyncIterable<readonly string[]>;
  /** The whole store, for a store that hides quarantined data from readers. */
  readonly unguarded?: Kv;
  /**
   * Called after a failed write: rejects while another write would surely fail, so that the store stays open for reading. Absent when that
   * cannot be known.
   */
  probe?(): Promise<void>;
  /** Closes the store. MUST do nothing when it is closed. */
  close(): Promise<void>;
}
