import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type {
  KeyValueEntry,
  KeyValueStore,
  WriteOperation,
  ScanRange,
} from "../../src/ports/key-value-store.ts";
import type { Eventually } from "../../src/ports/eventually.ts";
import { LevelDbKeyValueStore } from "../../src/storage/leveldb-key-value-store.ts";
import type { StorageOptions } from "../../src/storage/open-storage.ts";

/** Faults that can be planted on purpose. The checkers must find each of them. */
const plantedFaults: Readonly<Record<string, (kv: KeyValueStore) => KeyValueStore>> = {
  "ack-early": (kv) => new EarlyAckKeyValueStore(kv),
  "lose-events": (kv) => new LossyKeyValueStore(kv, /^[^/]*\/t\/[^/]*\/e\//, 20),
  "lose-webhooks": (kv) => new LossyKeyValueStore(kv, /^!outbox\//, 5),
  "lose-marks": (kv) => new LossyKeyValueStore(kv, /^!active\//, 20, (value) => value !== null),
  "lose-timers": (kv) => new LossyKeyValueStore(kv, /^!timer\//, 1, (value) => value !== null),
  "keep-hidden": (kv) => new UndeletingKeyValueStore(kv, 2),
  // Not a fault of the storage: the server has this fault itself when its name is given.
  "parked-ending": (kv) => kv,
};

/** Returns the storage of a data directory, with a planted fault if one is named. */
export function plantedStorage(data: string, plant: string | undefined): StorageOptions {
  if (plant === undefined) return { kind: "level", directory: data };
  const make = plantedFaults[plant];
  if (make === undefined) {
    throw new TypeError(`no planted fault "${plant}"; there are: ${Object.keys(plantedFaults).join(", ")}`);
  }
  mkdirSync(data, { recursive: true });
  return { kind: "key-value", store: make(new LevelDbKeyValueStore(join(data, "level"), false)) };
}

/** Passes every call to another store. Each planted fault overrides the calls in which it shows. */
class PassThroughKeyValueStore implements KeyValueStore {
  protected readonly kv: KeyValueStore;

  constructor(kv: KeyValueStore) {
    this.kv = kv;
  }

  open(): Promise<void> {
    return this.kv.open();
  }

  get(key: string): Eventually<Buffer | undefined> {
    return this.kv.get(key);
  }

  batch(ops: readonly WriteOperation[], options: { readonly sync: boolean }): Promise<void> {
    return this.kv.batch(ops, options);
  }

  entries(range: ScanRange): AsyncIterable<KeyValueEntry> {
    return this.kv.entries(range);
  }

  keys(range: ScanRange): AsyncIterable<readonly string[]> {
    return this.kv.keys(range);
  }

  close(): Promise<void> {
    return this.kv.close();
  }
}

/** Milliseconds that an acknowledged batch stays in this process's memory alone. */
const LATE = 50;

/** Acknowledges a batch before it is passed to the store, as a missing `await` would. */
class EarlyAckKeyValueStore extends PassThroughKeyValueStore {
  /** Pending writes that readers in this process must already see. */
  readonly #pending = new Map<string, WriteOperation>();
  #last: Promise<void> = Promise.resolve();

  override get(key: string): Eventually<Buffer | undefined> {
    const op = this.#pending.get(key);
    return op === undefined ? this.kv.get(key) : (op.value ?? undefined);
  }

  override async batch(ops: readonly WriteOperation[], options: { readonly sync: boolean }): Promise<void> {
    for (const op of ops) this.#pending.set(op.key, op);
    const due = new Promise((resolve) => setTimeout(resolve, LATE));
    this.#last = Promise.all([this.#last, due]).then(async () => {
      await this.kv.batch(ops, options);
      for (const op of ops) if (this.#pending.get(op.key) === op) this.#pending.delete(op.key);
    });
  }

  override async *entries(range: ScanRange): AsyncIterable<KeyValueEntry> {
    await this.#last;
    yield* this.kv.entries(range);
  }

  override async *keys(range: ScanRange): AsyncIterable<readonly string[]> {
    await this.#last;
    yield* this.kv.keys(range);
  }

  override async close(): Promise<void> {
    await this.#last;
    await this.kv.close();
  }
}

/** Loses some of the writes under certain keys: values, or deletions too. */
class LossyKeyValueStore extends PassThroughKeyValueStore {
  readonly #keys: RegExp;
  readonly #every: number;
  readonly #which: (value: WriteOperation["value"]) => boolean;
  #seen = 0;

  constructor(
    kv: KeyValueStore,
    keys: RegExp,
    every: number,
    which: (value: WriteOperation["value"]) => boolean = () => true,
  ) {
    super(kv);
    this.#keys = keys;
    this.#every = every;
    this.#which = which;
  }

  override batch(ops: readonly WriteOperation[], options: { readonly sync: boolean }): Promise<void> {
    const written = ops.filter(
      ({ key, value }) => !this.#keys.test(key) || !this.#which(value) || ++this.#seen % this.#every !== 0,
    );
    return this.kv.batch(written, options);
  }
}

/** Matches the mark of a thread that is to be deleted. Only temporary threads have it. */
const SWEPT = /^!sweep\/[^/]*\/([^/]*)\/$/;
const THREAD = /^(?:!\w+\/)?[^/]*\/(?:t\/)?([^/]*)/;

/** Skips the deletion of some of the threads that are to be deleted. */
class UndeletingKeyValueStore extends PassThroughKeyValueStore {
  readonly #every: number;
  readonly #undeleted = new Set<string>();
  #seen = 0;

  constructor(kv: KeyValueStore, every: number) {
    super(kv);
    this.#every = every;
  }

  override batch(ops: readonly WriteOperation[], options: { readonly sync: boolean }): Promise<void> {
    for (const { key, value } of ops) {
      const thread = SWEPT.exec(key)?.[1];
      if (thread !== undefined && value !== null && ++this.#seen % this.#every === 0)
        this.#undeleted.add(thread);
    }
    const isUndeleted = (key: string) => this.#undeleted.has(THREAD.exec(key)?.[1] ?? "");
    return this.kv.batch(
      ops.filter(({ key, value }) => !isUndeleted(key) || (value !== null && !SWEPT.test(key))),
      options,
    );
  }
}
