import { MemoryKeyValueStore } from "../../src/storage/memory-key-value-store.ts";
import type { Eventually } from "../../src/ports/eventually.ts";
import type {
  KeyValueEntry,
  KeyValueStore,
  WriteOperation,
  ScanRange,
} from "../../src/ports/key-value-store.ts";

/** A store whose batches wait until the test completes them or makes them fail, and that records its calls. */
export class GatedKeyValueStore implements KeyValueStore {
  readonly inner = new MemoryKeyValueStore();
  readonly batches: { readonly ops: readonly WriteOperation[]; readonly sync: boolean }[] = [];
  readonly calls: string[] = [];
  /** True: batches complete by themselves. */
  free = true;
  /** The errors of further calls of `open` and `probe`. */
  openError: Error | undefined;
  probeError: Error | undefined;
  #waiting: ((error: Error | undefined) => void)[] = [];
  #arrivals: (() => void)[] = [];

  async open(): Promise<void> {
    this.calls.push("open");
    if (this.openError !== undefined) throw this.openError;
    await this.inner.open();
  }

  get(key: string): Eventually<Buffer | undefined> {
    return this.inner.get(key);
  }

  async batch(ops: readonly WriteOperation[], { sync }: { readonly sync: boolean }): Promise<void> {
    this.batches.push({ ops, sync });
    if (!this.free) {
      const arrived = this.#arrivals;
      this.#arrivals = [];
      const error = await new Promise<Error | undefined>((resolve) => {
        this.#waiting.push(resolve);
        for (const told of arrived) told();
      });
      if (error !== undefined) throw error;
    }
    await this.inner.batch(ops, { sync });
  }

  entries(range: ScanRange): AsyncIterable<KeyValueEntry> {
    return this.inner.entries(range);
  }

  keys(range: ScanRange): AsyncIterable<readonly string[]> {
    return this.inner.keys(range);
  }

  async probe(): Promise<void> {
    this.calls.push("probe");
    if (this.probeError !== undefined) throw this.probeError;
  }

  async close(): Promise<void> {
    this.calls.push("close");
    await this.inner.close();
  }

  /** Resolves when a batch waits. */
  async arrival(): Promise<void> {
    if (this.#waiting.length === 0) await new Promise<void>((resolve) => this.#arrivals.push(resolve));
  }

  /** Completes the waiting batch, or makes it fail. */
  async pass(error?: Error): Promise<void> {
    await this.arrival();
    this.#waiting.shift()?.(error);
  }
}
