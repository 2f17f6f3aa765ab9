import type { BatchLossLedger, LedgerEntry } from "./batch-loss-ledger.ts";
import { decodeWithChecksum } from "./checksum-envelope.ts";
import { batchKey, BATCHES_RANGE, parseBatchKey, splitThreadKey, threadPrefix } from "./keys.ts";
import type { KeyValueStore, WriteOperation } from "../ports/key-value-store.ts";
import { encodeOrdinal } from "./sortable-numbers.ts";
import { encodeNumberWithChecksum } from "./stored-records.ts";

interface Write {
  readonly ops: readonly WriteOperation[];
  readonly thread?: string;
}

/**
 * The number of old batch numbers that each batch deletes. It is more than the one number that each batch adds, so that the old numbers
 * become fewer.
 */
const DELETED_PER_BATCH = 2;

/**
 * Numbers the batches. Each batch stores its number under a separate key, so that a missing number shows that LevelDB has lost part of its
 * log. The {@link BatchLossLedger} records the last number, and what each batch changed.
 */
export class BatchNumbering {
  readonly #ledger: BatchLossLedger;
  #next: number;
  /**
   * The lowest batch number whose key may still be stored. Each batch deletes a few keys of batches that the ledger no longer covers,
   * beginning here.
   */
  #trimmed: number;
  /**
   * The number of the first batch that the ledger covers, in its stored form. Each new batch stores this number as the value of its own
   * key.
   */
  #first: Buffer;

  constructor(
    ledger: BatchLossLedger,
    { next, trimmed }: { readonly next: number; readonly trimmed: number },
  ) {
    this.#ledger = ledger;
    this.#next = next;
    this.#trimmed = trimmed;
    this.#first = encodeNumberWithChecksum(ledger.first ?? next);
  }

  /** Makes the operations of the next batch. If the batch fails, the following batch gets the same number. */
  number(writes: readonly Write[]): readonly WriteOperation[] {
    const ops: WriteOperation[] = [{ key: batchKey(this.#next), value: this.#first }];
    const first = this.#ledger.first ?? 0;
    for (let i = 0; i < DELETED_PER_BATCH && this.#trimmed < first; i++) {
      ops.push({ key: batchKey(this.#trimmed++), value: null });
    }
    // `flatMap` is slower than these loops.
    for (const write of writes) for (const op of write.ops) ops.push(op);
    return ops;
  }

  /** Records the last numbered batch in the ledger. Called when the batch is stored. */
  stored(writes: readonly Write[], synced: boolean, bytes: number): void {
    const touches = new Set<string>();
    for (const { ops, thread } of writes) {
      if (thread !== undefined) touches.add(thread);
      else for (const { key } of ops) touches.add(scopeOf(key));
    }
    const number = this.#next++;
    if (this.#ledger.add({ number, synced, touches: [...touches] }, bytes)) {
      this.#first = encodeNumberWithChecksum(this.#ledger.first ?? number);
    }
  }

  close(): Promise<void> {
    return this.#ledger.close();
  }
}

/** The key prefix of the thread to which a changed key belongs; the key itself if it belongs to no thread. */
function scopeOf(key: string): string {
  const thread = splitThreadKey(key)?.key;
  return thread === undefined ? key : threadPrefix(thread);
}

export interface MissingBatches {
  /** Missing batches that were certainly stored before. */
  readonly lost: readonly LedgerEntry[];
  /** The missing numbers of batches that the ledger does not describe, so that it is unknown what they changed. */
  readonly unknown: readonly number[];
  /** Unsynced batches that were lost when the machine stopped. None of their writes was acknowledged as durable. */
  readonly unsynced: readonly number[];
  readonly next: number;
  /** The lowest batch number whose key may still be stored. */
  readonly trimmed: number;
  /** True if the ledger names at least one batch, so that missing batches are found by their numbers. */
  readonly isCovered: boolean;
  /** True if the ledger is missing or has no readable line. */
  readonly isLedgerEmpty: boolean;
}

/**
 * Compares the batch numbers in the database with those in the ledger. `isExcused` returns true for a key in a damaged part of a table: if
 * such a key is missing, its batch may still have been stored.
 */
export async function findMissingBatches(
  kv: KeyValueStore,
  ledger: BatchLossLedger,
  boot: string,
  isExcused: (key: string) => boolean,
): Promise<MissingBatches> {
  const present = new Set<number>();
  let [smallest, greatest] = [Infinity, 0];
  for await (const keys of kv.keys(BATCHES_RANGE)) {
    for (const key of keys) {
      const number = parseBatchKey(key);
      present.add(number);
      smallest = Math.min(smallest, number);
      greatest = Math.max(greatest, number);
    }
  }
  const missing = new Map<number, LedgerEntry>();
  const reported = new Set<number>();
  const read = ledger.read(
    (entry) => {
      if (!present.has(entry.number)) missing.set(entry.number, entry);
    },
    (number) => reported.add(number),
  );
  for (const number of missing.keys()) {
    if (reported.has(number) || isExcused(batchKey(number))) missing.delete(number);
  }
  const isSameBoot = boot !== "" && read.boot === boot;
  let lastSynced = 0;
  for (const { number, synced } of missing.values()) if (synced) lastSynced = Math.max(lastSynced, number);
  const [lost, unsynced]: [LedgerEntry[], number[]] = [[], []];
  for (const entry of [...missing.values()].toSorted((a, b) => a.number - b.number)) {
    // A power cut can remove only the end of a log, after the last synced batch. So a missing batch counts as lost in three cases: the machine
    // has not booted since, a later batch is stored, or this batch or a later missing one was synced.
    if (isSameBoot || entry.number < greatest || entry.number <= lastSynced) lost.push(entry);
    else unsynced.push(entry.number);
  }
  const unknown: number[] = [];
  for (let number = read.first ?? (await firstOf(kv, greatest)); number < greatest; number++) {
    const isKnown = present.has(number) || missing.has(number) || reported.has(number);
    if (!isKnown && !isExcused(batchKey(number))) unknown.push(number);
  }
  const next = Math.max(greatest, read.last) + 1;
  return {
    lost,
    unknown,
    unsynced,
    next,
    trimmed: Math.min(smallest, next),
    isCovered: read.first !== undefined && read.last > 0,
    isLedgerEmpty: read.isEmpty,
  };
}

/**
 * Finds the lowest batch number whose key must be present, when the ledger files are missing. Each batch stores, as the value of its key,
 * the number of the first batch that the ledger covered at that time. The value of the last batch's key is therefore the result. If that
 * value cannot be used, the result is `greatest`, the number of the last batch.
 */
async function firstOf(kv: KeyValueStore, greatest: number): Promise<number> {
  const bytes = greatest === 0 ? undefined : await kv.get(batchKey(greatest));
  const first =
    bytes && decodeWithChecksum(bytes, { tenant: "", thread: "" }, `batch ${encodeOrdinal(greatest)}`);
  return typeof first === "number" ? first : greatest;
}
