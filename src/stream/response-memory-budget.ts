import type { Eventually } from "../ports/eventually.ts";
import type { Cancel, Scheduler } from "../ports/scheduler.ts";

export interface MemoryLimits {
  /** The maximum size, in bytes, of one tenant's responses that clients have not read yet. A single response may be larger. */
  readonly tenant: number;
  /** The maximum size, in bytes, of the responses of all tenants that clients have not read yet. */
  readonly all: number;
  /** How many values of unknown size may be read at the same time for one tenant. */
  readonly reads: number;
}

const LIMITS: MemoryLimits = { tenant: 32 * 1024 * 1024, all: 128 * 1024 * 1024, reads: 2 };
/**
 * A tenant may always use its limit divided by this number (2 MiB), however much memory other tenants use. So it does not have to wait
 * until stalled clients of other tenants are disconnected.
 */
const FAIR_PART = 16;
/** Milliseconds after which a client that reads nothing is disconnected, if any response waits for memory. */
const STALL_MS = 10_000;
/** Milliseconds between two searches for stalled clients. */
const CHECK_INTERVAL_MS = 1_000;
/**
 * The usage records of tenants without responses are removed only if there are more records than this, so that not every request has to
 * create a new record.
 */
const MIN_RECORDS = 64;

/** The memory use of one tenant's responses. */
interface TenantUsage {
  bytes: number;
  /** The number of responses that were let in to read a value, and have not read it yet. */
  reading: number;
  /**
   * The number of reads in progress, through {@link ResponseMemoryBudget.read}. Apart from `reading`, because a response that was let in may
   * need such a read: if it had to wait for the others that were let in, which need one too, all of them would wait forever.
   */
  loading: number;
  /** The bytes of the last value that was read for this tenant. Each value that is being read is assumed to be as large. */
  expected: number;
  /** The number of the tenant's responses and reads in progress. When it is 0, this record may be dropped. */
  shares: number;
  /** Responses that wait for memory. */
  readonly waiting: ResponseMemoryShare[];
  /** Reads that wait because {@link MemoryLimits.reads} others are in progress. */
  readonly reads: (() => void)[];
}

/**
 * A budget for the memory of responses that are being sent: lists, large values and events. If the clients of one tenant request large data
 * and read it slowly, usually only the responses of this tenant have to wait.
 */
export class ResponseMemoryBudget {
  readonly #scheduler: Scheduler;
  readonly #limits: MemoryLimits;
  readonly #tenants = new Map<string, TenantUsage>();
  readonly #shares = new Set<ResponseMemoryShare>();
  #bytes = 0;
  #cancel: Cancel | undefined;
  /** The number of searches for stalled clients so far. It is used as a coarse clock. */
  #checks = 0;

  constructor(scheduler: Scheduler, limits: Partial<MemoryLimits> = {}) {
    this.#scheduler = scheduler;
    this.#limits = { ...LIMITS, ...limits };
  }

  /** Makes the {@link ResponseMemoryShare} of one response. The caller MUST close it. */
  share(tenant: string): ResponseMemoryShare {
    const share = new ResponseMemoryShare(this, tenant, this.#open(tenant));
    this.#shares.add(share);
    return share;
  }

  /**
   * Reads a value of unknown size. It waits if too many reads of the tenant are in progress. The memory of the value itself is counted by
   * the {@link ResponseMemoryShare} of the response.
   */
  read<T>(tenant: string, read: () => Eventually<T>): Eventually<T> {
    const use = this.#open(tenant);
    if (use.loading >= this.#limits.reads)
      return new Promise<void>((resolve) => use.reads.push(resolve))
        .then(read)
        .finally(() => this.#hasRead(tenant, use));
    use.loading++;
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
    use.loading--;
    this.#close(tenant, use);
    this.#admit(use);
  }

  get checks(): number {
    return this.#checks;
  }

  /**
   * True if there is memory for one more value of a response, and not too many values are being read. If no other response of the tenant
   * uses memory, there is always enough, because the response would otherwise wait for itself forever.
   */
  hasMemory({ use, bytes }: ResponseMemoryShare): boolean {
    const { tenant, all, reads } = this.#limits;
    const reading = use.reading + use.loading;
    if (reading >= reads) return false;
    const more = reading * use.expected;
    const used = use.bytes + more;
    if (used === bytes || used < tenant / FAIR_PART) return true;
    return used < tenant && this.#bytes + more < all;
  }

  wait(share: ResponseMemoryShare): void {
    this.#cancel ??= this.#scheduler.after(CHECK_INTERVAL_MS, this.#check);
    share.use.waiting.push(share);
  }

  /** Admits responses and reads that wait. Called when the memory use of a tenant has changed by `bytes`, or a read has ended. */
  changed(use: TenantUsage, bytes: number): void {
    this.#bytes += bytes;
    this.#admit(use);
    if (bytes >= 0 || this.#cancel === undefined) return;
    for (const other of this.#tenants.values()) this.#admit(other);
  }

  #admit(use: TenantUsage): void {
    // Reads are admitted before responses, because responses may wait for the results of reads.
    while (use.reads.length > 0 && use.loading < this.#limits.reads) {
      use.loading++;
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
        (use = { bytes: 0, reading: 0, loading: 0, expected: 0, shares: 0, waiting: [], reads: [] }),
      );
    use.shares++;
    return use;
  }

  #close(tenant: string, use: TenantUsage): void {
    if (--use.shares === 0 && this.#tenants.size > MIN_RECORDS) this.#tenants.delete(tenant);
  }

  closed(share: ResponseMemoryShare): void {
    this.#shares.delete(share);
    this.#close(share.tenant, share.use);
  }

  readonly #check = (): void => {
    this.#cancel = undefined;
    this.#checks++;
    for (const share of this.#shares) if (share.isStalled(STALL_MS / CHECK_INTERVAL_MS)) share.cut();
    if ([...this.#tenants.values()].some(({ waiting }) => waiting.length > 0))
      this.#cancel = this.#scheduler.after(CHECK_INTERVAL_MS, this.#check);
  };
}

/** The memory use of one response. */
export class ResponseMemoryShare {
  readonly tenant: string;
  readonly use: TenantUsage;
  readonly #budget: ResponseMemoryBudget;
  #bytes = 0;
  #isReading = false;
  /** Resolves the promise for which the response waits; undefined while it does not wait. */
  #admitted: (() => void) | undefined;
  #moved: number;
  #cut: () => void = () => undefined;

  constructor(budget: ResponseMemoryBudget, tenant: string, use: TenantUsage) {
    this.#budget = budget;
    this.tenant = tenant;
    this.use = use;
    this.#moved = budget.checks;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /**
   * Called before a value is read. Returns a promise if the response has to wait for memory; the promise never resolves if the share is
   * closed during the wait. After the read, {@link afterRead} MUST be called.
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

  /** Lets a response that waits for memory continue. The budget calls it when there is memory. */
  admit(): void {
    this.#isReading = true;
    this.use.reading++;
    this.progress();
    this.#admitted?.();
    this.#admitted = undefined;
  }

  /** Ends the read of a value. `bytes`: the bytes that the response uses now. */
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
    this.#moved = this.#budget.checks;
  };

  /** Registers the function that cuts off the response. */
  readonly onCut = (cut: () => void): void => {
    this.#cut = cut;
  };

  isStalled(checks: number): boolean {
    // A response that waits for memory does not count as stalled, because its client is not the cause.
    return this.#bytes > 0 && this.#admitted === undefined && this.#budget.checks - this.#moved >= checks;
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
