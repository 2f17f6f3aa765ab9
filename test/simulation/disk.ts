import { ServiceError } from "../../src/model/errors.ts";
import type {
  KeyValueEntry,
  KeyValueStore,
  WriteOperation,
  ScanRange,
} from "../../src/ports/key-value-store.ts";
import type { Eventually } from "../../src/ports/eventually.ts";
import type { SimulatedRandom } from "./random.ts";
import type { SimulatedScheduler } from "./scheduler.ts";

/**
 * `kill`: the process dies, and writes that the operating system has accepted survive. `power`: unsynced writes may be
 * lost too.
 */
export type Crash = "kill" | "power";

/**
 * Planted bugs: writes are acknowledged before they are issued; pending webhooks or timers of machines are lost; some data of deleted threads
 * stays.
 */
export const plantedFaults = ["ack-early", "lose-webhooks", "lose-timers", "keep-hidden"] as const;
export type PlantedFault = (typeof plantedFaults)[number] | null;

/** The operations that a planted bug removes from a batch. */
const lost: Readonly<Record<Exclude<PlantedFault, null>, (op: WriteOperation) => boolean>> = {
  "ack-early": () => false,
  "lose-webhooks": ({ key, value }) => value !== null && key.includes("/d/pending/"),
  "lose-timers": ({ key, value }) => value !== null && key.startsWith("!timer/"),
  // A thread's journal is deleted only together with the thread.
  "keep-hidden": ({ key, value }) => value === null && /\/t\/[^/]*\/j\//.test(key),
};

/** The error for reads after the server's death. */
export const DEAD = "the server is dead";

type DiskScheduler = Pick<SimulatedScheduler, "after" | "external">;

interface Batch {
  readonly ops: readonly WriteOperation[];
  readonly sync: boolean;
}

/** The storage that outlives every server: the batches that reached the disk, in order. */
export class Disk {
  readonly plant: PlantedFault;
  /** Reads take time, as over a network, and end in any order. */
  readonly isRemote: boolean;
  readonly #random: SimulatedRandom;
  #applied: Batch[] = [];
  #values: Map<string, Buffer>;
  /** The number of batches that survive a power cut. */
  #synced = 0;
  #kv: DiskKeyValueStore | undefined;

  constructor(
    random: SimulatedRandom,
    plant: PlantedFault,
    values: ReadonlyMap<string, Buffer> = new Map(),
    isRemote = false,
  ) {
    this.#random = random;
    this.plant = plant;
    this.isRemote = isRemote;
    this.#values = new Map(values);
  }

  get values(): ReadonlyMap<string, Buffer> {
    return this.#values;
  }

  /** Returns the store as one server sees it. */
  mount(scheduler: DiskScheduler): KeyValueStore {
    this.#kv = new DiskKeyValueStore(this, scheduler, this.#random);
    return this.#kv;
  }

  /** Detaches the dead server. Returns the batches that had not reached the disk. */
  unmount(): readonly Batch[] {
    const pending = this.#kv?.die() ?? [];
    this.#kv = undefined;
    return pending;
  }

  apply(batch: Batch): void {
    this.#applied.push(batch);
    this.#put(batch);
    if (batch.sync) this.#synced = this.#applied.length;
  }

  #put({ ops }: Batch): void {
    for (const { key, value } of ops) {
      if (value === null) this.#values.delete(key);
      else this.#values.set(key, value);
    }
  }

  /** Ends the attached server, whatever it was doing. */
  crash(kind: Crash): void {
    for (const batch of this.unmount()) if (this.#random.chance(0.5)) this.apply(batch);
    if (kind === "kill") return;
    // LevelDB's log is one file, so a tail of it is lost.
    const kept = this.#synced + this.#random.below(this.#applied.length - this.#synced + 1);
    this.#applied = this.#applied.slice(0, kept);
    this.#values = new Map();
    for (const batch of this.#applied) this.#put(batch);
  }
}

class DiskKeyValueStore implements KeyValueStore {
  readonly #disk: Disk;
  readonly #scheduler: DiskScheduler;
  readonly #random: SimulatedRandom;
  #pending: Batch[] = [];
  #dead = false;
  #isClosed = false;

  constructor(disk: Disk, scheduler: DiskScheduler, random: SimulatedRandom) {
    this.#disk = disk;
    this.#scheduler = scheduler;
    this.#random = random;
  }

  async open(): Promise<void> {
    this.#isClosed = false;
  }

  /** Waits for accepted writes, as LevelDB does. */
  async close(): Promise<void> {
    while (this.#pending.length > 0) await new Promise<void>((resolve) => this.#scheduler.after(1, resolve));
    this.#isClosed = true;
  }

  #refuseClosed(): void {
    if (this.#isClosed || this.#dead) throw new ServiceError("storage.unavailable", DEAD);
  }

  get(key: string): Eventually<Buffer | undefined> {
    this.#refuseClosed();
    return this.#disk.isRemote ? this.#getLater(key) : this.#values.get(key);
  }

  /** The value of the beginning of the read, or that of its end. */
  async #getLater(key: string): Promise<Buffer | undefined> {
    const first = this.#values.get(key);
    const isEarly = this.#random.chance(0.5);
    await this.#delay();
    this.#refuseClosed();
    return isEarly ? first : this.#values.get(key);
  }

  /** Usually some turns, sometimes as long as a write. Never ends on a dead server. */
  async #delay(): Promise<void> {
    const ms = this.#random.chance(0.2) ? this.#random.float() * 3 : 0;
    await new Promise<void>((resolve) => {
      if (ms > 0) this.#scheduler.after(ms, resolve);
      else this.#scheduler.external(resolve);
    });
  }

  /** This process sees an early-acknowledged batch at once, as if it were in its memory. */
  get #values(): ReadonlyMap<string, Buffer> {
    const { plant, values } = this.#disk;
    if (plant !== "ack-early" || this.#pending.length === 0) return values;
    const seen = new Map(values);
    for (const { ops } of this.#pending) {
      for (const { key, value } of ops) {
        if (value === null) seen.delete(key);
        else seen.set(key, value);
      }
    }
    return seen;
  }

  async batch(all: readonly WriteOperation[], { sync }: { readonly sync: boolean }): Promise<void> {
    if (this.#isClosed) this.#refuseClosed();
    const { plant } = this.#disk;
    const ops = plant === null ? all : all.filter((op) => !lost[plant](op));
    const batch = { ops, sync };
    this.#pending.push(batch);
    const latency = sync ? 0.2 + this.#random.float() * 2 : 0.05;
    const early = plant === "ack-early";
    return new Promise((resolve) => {
      const applies = () => {
        // A dead server receives nothing any more.
        if (this.#dead) return;
        this.#pending = this.#pending.filter((one) => one !== batch);
        this.#disk.apply(batch);
        if (!early) resolve();
      };
      this.#scheduler.after(early ? 20 : latency, applies);
      if (early) resolve();
    });
  }

  async *entries({
    gte,
    lt,
    reverse = false,
    limit = Number.POSITIVE_INFINITY,
  }: ScanRange): AsyncGenerator<KeyValueEntry> {
    if (this.#isClosed) this.#refuseClosed();
    if (this.#disk.isRemote) await this.#delay();
    const values = this.#values;
    const keys = [...values.keys()].filter((key) => key >= gte && key < lt).sort();
    if (reverse) keys.reverse();
    const found = keys.slice(0, limit).map((key) => [key, values.get(key) as Buffer] as const);
    for (const entry of found) {
      if (this.#dead) return;
      yield entry;
    }
  }

  async *keys(range: ScanRange): AsyncGenerator<readonly string[]> {
    for await (const [key] of this.entries(range)) yield [key];
  }

  die(): readonly Batch[] {
    this.#dead = true;
    return this.#pending;
  }
}
