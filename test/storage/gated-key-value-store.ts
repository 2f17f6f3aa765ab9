import { MemoryKeyValueStore } from "../../src/storage/memory-key-value-store.ts";
import type { Eventually } from "../../src/ports/eventually.ts";
import type {
  KeyValueEntry,
  KeyValueStore,
  WriteOperation,
  ScanRange,
} from "../../src/ports/key-value-store.ts";

/** A store whose every batch waits until the test lets it pass or fail, and that counts what is done to it. */
export class GatedKeyValueStore implements KeyValueStore {
  readonly inner = new MemoryKeyValueStore();
  readonly batches: { readonly ops: readonly WriteOperation[]; readonly sync: boolean }[] = [];
  readonly calls: string[] = [];
  /** Batches pass by themselves. */
  free = true;
  /** What opening and probing answer from now on. */
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

  /** Resolves once a batch waits. */
  async arrival(): Promise<void> {
    if (this.#waiting.length === 0) await new Promise<void>((resolve) => this.#arrivals.push(resolve));
  }

  /** Lets the batch that waits pass, or fail. */
  async pass(error?: Error): Promise<void> {
    await this.arrival();
    this.#waiting.shift()?.(error);
  }
}
