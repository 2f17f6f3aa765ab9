import type { KeyValueStore, ReplaceableKeyValueStore } from "../../../src/ports/key-value-store.ts";
import { type Crash, Disk } from "../disk.ts";
import type { SimulatedRandom } from "../random.ts";
import type { ProcessScheduler } from "./machine.ts";

/** The directory of a shard on a machine. It outlives its processes; a power cut may remove the last writes, which are not synced. */
export class ShardDisk {
  readonly #random: SimulatedRandom;
  #disk: Disk;
  /** The process that has mounted the disk last. */
  #owner: ProcessScheduler | undefined;
  /** True while the content is replaced. */
  #isReplacing = false;

  constructor(random: SimulatedRandom) {
    this.#random = random;
    this.#disk = this.#empty();
  }

  #empty(): Disk {
    return new Disk(this.#random, null);
  }

  get values(): ReadonlyMap<string, Buffer> {
    return this.#disk.values;
  }

  /** Returns the store as one process sees it. The previous process MUST have ended. */
  mount(scheduler: ProcessScheduler): ReplaceableKeyValueStore {
    this.#owner = scheduler;
    let store = this.#disk.mount(scheduler);
    return {
      open: () => store.open(),
      get: (key) => store.get(key),
      batch: (ops, options) => store.batch(ops, options),
      entries: (range) => store.entries(range),
      keys: (range) => store.keys(range),
      close: () => store.close(),
      replace: async (fill: (empty: KeyValueStore) => Promise<void>) => {
        const filled = this.#empty();
        const next = filled.mount(scheduler);
        this.#isReplacing = true;
        try {
          await fill(next);
          await next.batch([], { sync: true });
          this.#disk.unmount();
          this.#disk = filled;
          store = next;
        } finally {
          this.#isReplacing = false;
        }
      },
    };
  }

  /** The process `owner` has ended, whatever it was doing. */
  processEnded(owner: ProcessScheduler): void {
    if (owner === this.#owner) this.#crash("kill");
  }

  /** The machine loses its power. Its processes MUST have ended. */
  powerCut(): void {
    this.#crash("power");
  }

  #crash(kind: Crash): void {
    this.#disk.crash(kind);
    if (this.#isReplacing && this.#random.chance(0.5)) this.#disk = this.#empty();
    this.#isReplacing = false;
  }
}
