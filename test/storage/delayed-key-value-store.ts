import type {
  KeyValueEntry,
  KeyValueStore,
  ScanRange,
  WriteOperation,
} from "../../src/ports/key-value-store.ts";
import { MemoryKeyValueStore } from "../../src/storage/memory-key-value-store.ts";

/** Turns that each read takes. Consecutive ones differ, so that reads end in another order than they began. */
const TURNS = [3, 1, 5, 2, 1, 4, 1] as const;

/**
 * A store as over a network: every read takes a turn or more, and reads end in another order than they began. Every
 * other read returns the value at its beginning, the others the value at their end: both are allowed while a batch is
 * in flight.
 */
export class DelayedKeyValueStore implements KeyValueStore {
  readonly #inner: KeyValueStore;
  #count = 0;

  constructor(inner: KeyValueStore = new MemoryKeyValueStore()) {
    this.#inner = inner;
  }

  open(): Promise<void> {
    return this.#inner.open();
  }

  async get(key: string): Promise<Buffer | undefined> {
    const isEarly = this.#count % 2 === 0;
    const first = await this.#inner.get(key);
    await this.#turns();
    return isEarly ? first : this.#inner.get(key);
  }

  async batch(ops: readonly WriteOperation[], options: { readonly sync: boolean }): Promise<void> {
    await this.#turns();
    await this.#inner.batch(ops, options);
    await this.#turns();
  }

  async *entries(range: ScanRange): AsyncGenerator<KeyValueEntry> {
    await this.#turns();
    yield* this.#inner.entries(range);
  }

  async *keys(range: ScanRange): AsyncGenerator<readonly string[]> {
    await this.#turns();
    yield* this.#inner.keys(range);
  }

  close(): Promise<void> {
    return this.#inner.close();
  }

  async #turns(): Promise<void> {
    for (let left = TURNS[this.#count++ % TURNS.length] as number; left > 0; left--)
      await new Promise((resolve) => setImmediate(resolve));
  }
}
