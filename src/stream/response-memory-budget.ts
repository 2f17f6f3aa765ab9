import type { Eventually } from "../ports/eventually.ts";
import type { Cancel, Scheduler } from "../ports/scheduler.ts";

export interface MemoryLimits {
  /** Bytes of one tenant's responses that clients have not read yet. One response may exceed them. */
  readonly tenant: number;
  /** The same for the responses of all tenants. */
  readonly all: number;
  /** Values of unknown size that are read at the same time for one tenant. */
  readonly reads: number;
}

const LIMITS: MemoryLimits = { tenant: 32 * 1024 * 1024, all: 128 * 1024 * 1024, reads: 2 };
/**
 * The part of its limit that a tenant may use however much the others use: 2 MiB. Otherwise lists that have sent an item each would wait for each other, until the
 * others' clients are cut off.
 */
const FAIR_PART = 16;
/** Milliseconds after which a client that reads nothing is cut off, if others wait for the memory. */
const STALLED = 10_000;
const EVERY = 1_000;
/** Tenants without responses whose records stay in memory: a busy tenant would otherwise create a new record for each request. */
const KEPT = 64;

/** The memory use of one tenant's responses. */
interface TenantUsage {
  bytes: number;
  reading: number;
  /** Bytes of the last large value: the estimate for reads in progress. */
  expected: number;
  /** Responses being written, and reads. When there are none, this record may be dropped. */
  shares: number;
  /** Responses that wait for bytes. */
  readonly waiting: MemoryShare[];
  /** Reads that wait only for other reads, not for memory. */
  readonly reads: (() => void)[];
}

/**
 * A budget for the memory of responses that are being written: lists, large values and events. Clients that request large data and read it
 * slowly wait for each other, but not for those of other tenants.
 */
export class ResponseMemoryBudget {
  readonly #scheduler: Scheduler;
  readonly #limits: MemoryLimits;
  readonly #tenants = new Map<string, TenantUsage>();
  readonly #shares = new Set<MemoryShare>();
  #bytes = 0;
  #cancel: Cancel | undefined;
  /** Counts the timer's passes, as a coarse clock for stalled clients. */
  #looks = 0;

  constructor(scheduler: Scheduler, limits: Partial<MemoryLimits> = {}) {
    this.#scheduler = scheduler;
    this.#limits = { ...LIMITS, ...limits };
  }

  /** Makes a share for one response. It MUST be closed. */
  share(tenant: string): MemoryShare {
    const share = new MemoryShare(this, tenant, this.#open(tenant));
    this.#shares.add(share);
    return share;
  }

  /**
   * Reads a value of unknown size once there are not too many reads of the tenant in progress. The {@link MemoryShare} of the response
   * counts the memory of the value.
   */
  read<T>(tenant: string, read: () => Eventually<T>): Eventually<T> {
    const use = this.#open(tenant);
    if (use.reading >= this.#limits.reads)
      return new Promise<void>((resolve) => use.reads.push(resolve))
        .then(read)
        .finally(() => this.#hasRead(tenant, use));
    use.reading++;
    let value: Eventually<T>;
    try {
      value = read();
    } catch (cause) {
      this.#hasRead(tenant, use);
      throw cause;
    }
    if (value instanceof Promise) return value.finally(() => this.#hasRead(tenant, use));
    this.#hasRead(tenant, use);
    return value;
  }

  #hasRead(tenant: string, use: TenantUsage): void {
    use.reading--;
    this.#close(tenant, use);
    this.#admit(use);
  }

  get looks(): number {
    return this.#looks;
  }

  /** A share waits only for other shares of the tenant, never for itself, which would never end. */
  hasMemory({ use, bytes }: MemoryShare): boolean {
    const { tenant, all, reads } = this.#limits;
    if (use.reading >= reads) return false;
    const more = use.reading * use.expected;
    const used = use.bytes + more;
    if (used === bytes || used < tenant / FAIR_PART) return true;
    return used < tenant && this.#bytes + more < all;
  }

  wait(share: MemoryShare): void {
    this.#cancel ??= this.#scheduler.after(EVERY, this.#look);
    share.use.waiting.push(share);
  }

  /** Called when a tenant uses more or fewer bytes, or a read has ended. Admits waiting responses and reads. */
  changed(use: TenantUsage, bytes: number): void {
    this.#bytes += bytes;
    this.#admit(use);
    if (bytes >= 0 || this.#cancel === undefined) return;
    for (const other of this.#tenants.values()) this.#admit(other);
  }

  #admit(use: TenantUsage): void {
    // Reads come first, because responses may wait for their results.
    while (use.reads.length > 0 && use.reading < this.#limits.reads) {
      use.reading++;
      use.reads.shift()?.();
    }
    for (let first = use.waiting[0]; first !== undefined && this.hasMemory(first); first = use.waiting[0]) {
      use.waiting.shift();
      first.admit();
    }
  }

  #open(tenant: string): TenantUsage {
    let use = this.#tenants.get(tenant);
    if (use === undefined)
      this.#tenants.set(
        tenant,
        (use = { bytes: 0, reading: 0, expected: 0, shares: 0, waiting: [], reads: [] }),
      );
    use.shares++;
    return use;
  }

  #close(tenant: string, use: TenantUsage): void {
    if (--use.shares === 0 && this.#tenants.size > KEPT) this.#tenants.delete(tenant);
  }

  closed(share: MemoryShare): void {
    this.#shares.delete(share);
    this.#close(share.tenant, share.use);
  }

  readonly #look = (): void => {
    this.#cancel = undefined;
    this.#looks++;
    for (const share of this.#shares) if (share.isStalled(STALLED / EVERY)) share.cut();
    if ([...this.#tenants.values()].some(({ waiting }) => waiting.length > 0))
      this.#cancel = this.#scheduler.after(EVERY, this.#look);
  };
}

/** The memory use of one response. */
export class MemoryShare {
  readonly tenant: string;
  readonly use: TenantUsage;
  readonly #budget: ResponseMemoryBudget;
  #bytes = 0;
  #isReading = false;
  /** Resolves the promise that the response waits for; undefined while it does not wait. */
  #admitted: (() => void) | undefined;
  #moved: number;
  #cut: () => void = () => undefined;

  constructor(budget: ResponseMemoryBudget, tenant: string, use: TenantUsage) {
    this.#budget = budget;
    this.tenant = tenant;
    this.use = use;
    this.#moved = budget.looks;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /**
   * Called before a value is read. Returns a promise if the response must wait; it does not resolve when the share is closed meanwhile.
   * {@link afterRead} MUST follow.
   */
  beforeRead(): Promise<void> | undefined {
    if (!this.#budget.hasMemory(this)) {
      return new Promise((resolve) => {
        this.#admitted = resolve;
        this.#budget.wait(this);
      });
    }
    this.admit();
    return undefined;
  }

  /** Called by the budget when there is memory. */
  admit(): void {
    this.#isReading = true;
    this.use.reading++;
    this.progress();
    this.#admitted?.();
    this.#admitted = undefined;
  }

  /** Called after the value was read; `bytes` are in use now. */
  afterRead(bytes = 0): void {
    if (!this.#isReading) return;
    this.#isReading = false;
    this.use.reading--;
    this.setBytes(bytes);
  }

  setBytes(bytes: number): void {
    const more = bytes - this.#bytes;
    if (more > 0) this.use.expected = bytes;
    this.#bytes = bytes;
    this.use.bytes += more;
    this.#budget.changed(this.use, more);
  }

  readonly progress = (): void => {
    this.#moved = this.#budget.looks;
  };

  /** Registers how to cut off the response. */
  readonly onCut = (cut: () => void): void => {
    this.#cut = cut;
  };

  isStalled(looks: number): boolean {
    // A response that waits for memory is not a slow client.
    return this.#bytes > 0 && this.#admitted === undefined && this.#budget.looks - this.#moved >= looks;
  }

  cut(): void {
    this.#cut();
  }

  close(): void {
    const place = this.#admitted === undefined ? -1 : this.use.waiting.indexOf(this);
    if (place >= 0) this.use.waiting.splice(place, 1);
    this.#admitted = undefined;
    this.afterRead();
    this.setBytes(0);
    this.#budget.closed(this);
  }
}
