import type { Budget } from "../ports/time-budget.ts";

/** One change of the store: a put, or with null a delete. */
export interface Op {
  readonly key: string;
  readonly value: Buffer | null;
}

export type Entry = readonly [key: string, value: Buffer];

/** Keys from `gte` (included) to `lt` (not included), in the order of their bytes. */
export interface Range {
  readonly gte: string;
  readonly lt: string;
  /** From the last to the first. */
  readonly reverse?: boolean;
  readonly limit?: number;
}

/**
 * What the storage asks of an ordered store of keys and values: LevelDB's own promises, no more. Keys are ASCII.
 *
 * Every failure MUST be a ServiceError: `journal.damaged` where the store knows that its bytes are not what was written,
 * `storage.unavailable` for the rest.
 */
export interface Kv {
  /** What its scans go on by; without one they keep the event loop to themselves. */
  budget?: Budget | undefined;
  /** Opens it, also again after a close: everything stored before MUST be there. */
  open(): Promise<void>;
  /** The value, in the same turn. MUST throw while the store is closed. */
  getSync(key: string): Buffer | undefined;
  /**
   * Stores all of `ops` or none of them; a later one wins over an earlier one of the same key. Resolves, with `sync`, once
   * they would survive a power cut, without it, once they would survive the end of the process.
   */
  batch(ops: readonly Op[], options: { readonly sync: boolean }): Promise<void>;
  /** Entries as they stood at the call. Ends at the end of the range and never before. */
  entries(range: Range): AsyncIterable<Entry>;
  /** The same without their values, many at a time: the first ones come soon, for who wants a few. */
  keys(range: Range): AsyncIterable<readonly string[]>;
  /** All that is stored, where some of it is kept from readers since it may be wrong. */
  readonly unguarded?: Kv;
  /**
   * After a failed write: rejects while writing again would be sure to fail, so that the store is left open for
   * reading. Absent where nobody can tell.
   */
  probe?(): Promise<void>;
  /** Closes it. MUST do nothing when it is closed. */
  close(): Promise<void>;
}
