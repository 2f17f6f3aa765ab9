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
interface Use {
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
export class ListRoom {
  readonly #scheduler: Scheduler;
  readonly #tenants = new Map<string, Use>();
  readonly #places = new Set<Place>();
  #bytes = 0;
  #cancel: Cancel | undefined;
  /** Counts the timer's passes, as a coarse clock for stalled clients. */
  #looks = 0;

  constructor(scheduler: Scheduler) {
    this.#scheduler = scheduler;
  }

  place(tenant: string): Place {
    let use = this.#tenants.get(tenant);
    if (use === undefined)
      this.#tenants.set(tenant, (use = { bytes: 0, reading: 0, places: 0, waiting: [] }));
    use.places++;
    const place = new Place(this, tenant, use);
    this.#places.add(place);
    return place;
  }

  get looks(): number {
    return this.#looks;
  }

  hasRoom({ bytes, reading }: Use): boolean {
    return reading < READING && (bytes === 0 || (bytes < TENANT && this.#bytes < ALL));
  }

  wait(use: Use): Promise<void> {
    this.#cancel ??= this.#scheduler.after(EVERY, this.#look);
    return new Promise((resolve) => use.waiting.push(resolve));
  }

  /** Called when a tenant uses more or fewer bytes, or reads an item less. Admits lists that wait. */
  changed(use: Use, bytes: number): void {
    this.#bytes += bytes;
    this.#admit(use);
    if (bytes >= 0 || this.#cancel === undefined) return;
    for (const other of this.#tenants.values()) this.#admit(other);
  }

  #admit(use: Use): void {
    while (use.waiting.length > 0 && this.hasRoom(use)) {
      use.reading++;
      use.waiting.shift()?.();
    }
  }

  gone(place: Place): void {
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
export class Place {
  readonly tenant: string;
  readonly use: Use;
  readonly #room: ListRoom;
  #bytes = 0;
  #isReading = false;
  #moved: number;
  #cut: () => void = () => undefined;

  constructor(room: ListRoom, tenant: string, use: Use) {
    this.#room = room;
    this.tenant = tenant;
    this.use = use;
    this.#moved = room.looks;
  }

  /** Called before an item is read. Returns a promise if the list must wait. {@link leave} MUST follow. */
  enter(): Promise<void> | undefined {
    this.#isReading = true;
    if (!this.#room.hasRoom(this.use)) return this.#room.wait(this.use);
    this.use.reading++;
    return undefined;
  }

  /** Called after the item was read; `bytes` are in use now. */
  leave(bytes = 0): void {
    if (!this.#isReading) return;
    this.#isReading = false;
    this.use.reading--;
    this.hold(bytes);
  }

  hold(bytes: number): void {
    const more = bytes - this.#bytes;
    this.#bytes = bytes;
    this.use.bytes += more;
    this.#room.changed(this.use, more);
  }

  readonly progress = (): void => {
    this.#moved = this.#room.looks;
  };

  /** Sets how the list is cut off. */
  readonly cutBy = (cut: () => void): void => {
    this.#cut = cut;
  };

  isStalled(looks: number): boolean {
    return this.#bytes > 0 && this.#room.looks - this.#moved >= looks;
  }

  cut(): void {
    this.#cut();
  }

  close(): void {
    this.leave();
    this.hold(0);
    this.#room.gone(this);
  }
}
