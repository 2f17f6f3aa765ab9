import type { Cancel, Scheduler } from "../ports/scheduler.ts";

/** Bytes of items that are read and that clients have not taken yet: of one tenant, and of all. */
const TENANT = 64 * 1024 * 1024;
const ALL = 192 * 1024 * 1024;
/** Lists that read an item at the same moment, of one tenant: how large it is is known afterwards. */
const READING = 4;
/** Milliseconds after which a client that takes nothing is cut off, where others wait for the memory that it holds. */
const STALLED = 10_000;
const EVERY = 1_000;

/** What a tenant's lists use. */
interface Use {
  bytes: number;
  reading: number;
  /** Lists that are being written; with the last one this is forgotten. */
  places: number;
  readonly waiting: (() => void)[];
}

/**
 * Bounds what lists that are being written hold in memory: many clients that each ask for large items, and take them slowly, wait
 * for one another, but not for those of another tenant.
 */
export class ListRoom {
  readonly #scheduler: Scheduler;
  readonly #tenants = new Map<string, Use>();
  readonly #places = new Set<Place>();
  #bytes = 0;
  #cancel: Cancel | undefined;
  /** Counts looks at those that are stalled: time enough without a clock. */
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

  /** A tenant uses so many bytes more, or reads one item less: who waits may go on. */
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

/** What one list holds. */
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

  /** Before an item is read: undefined, or what to wait for. {@link leave} MUST follow. */
  enter(): Promise<void> | undefined {
    this.#isReading = true;
    if (!this.#room.hasRoom(this.use)) return this.#room.wait(this.use);
    this.use.reading++;
    return undefined;
  }

  /** It has been read; so many bytes are held now. */
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

  /** How the list is cut off. */
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
