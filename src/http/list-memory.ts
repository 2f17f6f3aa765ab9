import type { Cancel, Scheduler } from "../ports/scheduler.ts";

/** Bytes of items that were read but not yet taken by clients: of one tenant, and of all. */
const TENANT = 64 * 1024 * 1024;
const ALL = 192 * 1024 * 1024;
/** Lists of one tenant that may read an item at the same time: the size of an item is known only afterwards. */
const READING = 4;
/** Milliseconds after which a client that takes nothing is cut off, if others wait for the memory. */
const STALLED = 10_000;
const EVERY = 1_000;

/** The memory use of one tenant's lists. */
interface TenantUsage {
  bytes: number;
  reading: number;
  /** Lists being written. When there are none, this record is dropped. */
  places: number;
  readonly waiting: (() => void)[];
}

/**
 * Limits the memory of lists that are being written: clients that ask for large items and take them slowly wait for each other, but not for
 * those of other tenants.
 */
export class ListMemoryLimiter {
  readonly #scheduler: Scheduler;
  readonly #tenants = new Map<string, TenantUsage>();
  readonly #places = new Set<ListUsage>();
  #bytes = 0;
  #cancel: Cancel | undefined;
  /** Counts the timer's passes, as a coarse clock for stalled clients. */
  #looks = 0;

  constructor(scheduler: Scheduler) {
    this.#scheduler = scheduler;
  }

  track(tenant: string): ListUsage {
    let use = this.#tenants.get(tenant);
    if (use === undefined)
      this.#tenants.set(tenant, (use = { bytes: 0, reading: 0, places: 0, waiting: [] }));
    use.places++;
    const place = new ListUsage(this, tenant, use);
    this.#places.add(place);
    return place;
  }

  get looks(): number {
    return this.#looks;
  }

  hasMemory({ bytes, reading }: TenantUsage): boolean {
    return reading < READING && (bytes === 0 || (bytes < TENANT && this.#bytes < ALL));
  }

  wait(use: TenantUsage): Promise<void> {
    this.#cancel ??= this.#scheduler.after(EVERY, this.#look);
    return new Promise((resolve) => use.waiting.push(resolve));
  }

  /** Called when a tenant uses more or fewer bytes, or reads an item less. Admits lists that wait. */
  changed(use: TenantUsage, bytes: number): void {
    this.#bytes += bytes;
    this.#admit(use);
    if (bytes >= 0 || this.#cancel === undefined) return;
    for (const other of this.#tenants.values()) this.#admit(other);
  }

  #admit(use: TenantUsage): void {
    while (use.waiting.length > 0 && this.hasMemory(use)) {
      use.reading++;
      use.waiting.shift()?.();
    }
  }

  untrack(place: ListUsage): void {
    this.#places.delete(place);
    const { tenant, use } = place;
    if (--use.places === 0) this.#tenants.delete(tenant);
  }

  readonly #look = (): void => {
    this.#cancel = undefined;
    this.#looks++;
    for (const place of this.#places) if (place.isStalled(STALLED / EVERY)) place.cut();
    if ([...this.#tenants.values()].some(({ waiting }) => waiting.length > 0))
      this.#cancel = this.#scheduler.after(EVERY, this.#look);
  };
}

/** The memory use of one list. */
export class ListUsage {
  readonly tenant: string;
  readonly use: TenantUsage;
  readonly #memory: ListMemoryLimiter;
  #bytes = 0;
  #isReading = false;
  #moved: number;
  #cut: () => void = () => undefined;

  constructor(memory: ListMemoryLimiter, tenant: string, use: TenantUsage) {
    this.#memory = memory;
    this.tenant = tenant;
    this.use = use;
    this.#moved = memory.looks;
  }

  /** Called before an item is read. Returns a promise if the list must wait. {@link afterRead} MUST follow. */
  beforeRead(): Promise<void> | undefined {
    this.#isReading = true;
    if (!this.#memory.hasMemory(this.use)) return this.#memory.wait(this.use);
    this.use.reading++;
    return undefined;
  }

  /** Called after the item was read; `bytes` are in use now. */
  afterRead(bytes = 0): void {
    if (!this.#isReading) return;
    this.#isReading = false;
    this.use.reading--;
    this.setBytes(bytes);
  }

  setBytes(bytes: number): void {
    const more = bytes - this.#bytes;
    this.#bytes = bytes;
    this.use.bytes += more;
    this.#memory.changed(this.use, more);
  }

  readonly progress = (): void => {
    this.#moved = this.#memory.looks;
  };

  /** Sets how the list is cut off. */
  readonly onCut = (cut: () => void): void => {
    this.#cut = cut;
  };

  isStalled(looks: number): boolean {
    return this.#bytes > 0 && this.#memory.looks - this.#moved >= looks;
  }

  cut(): void {
    this.#cut();
  }

  close(): void {
    this.afterRead();
    this.setBytes(0);
    this.#memory.untrack(this);
  }
}
