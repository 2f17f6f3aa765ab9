import { TenantQueues } from "./time-budget.ts";

/**
 * Limits how much work of one kind runs at the same time. If several tenants have waiting work, their work alternates.
 */
export class FairSemaphore {
  readonly #count: number;
  #free: number;
  readonly #waiting = new TenantQueues();

  constructor(count: number) {
    this.#count = count;
    this.#free = count;
  }

  get isIdle(): boolean {
    return this.#free === this.#count;
  }

  async run<T>(tenant: string, work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--;
    // Waits for a slot. Work that ends passes its slot directly to waiting work.
    else await new Promise<void>((resolve) => this.#waiting.push(tenant, resolve));
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#free++;
      else next();
    }
  }
}

/** Like {@link FairSemaphore}, but with separate slots for each tenant. */
export class SemaphorePerTenant {
  readonly #count: number;
  readonly #byTenant = new Map<string, FairSemaphore>();

  constructor(count: number) {
    this.#count = count;
  }

  async run<T>(tenant: string, work: () => Promise<T>): Promise<T> {
    let slots = this.#byTenant.get(tenant);
    if (slots === undefined) this.#byTenant.set(tenant, (slots = new FairSemaphore(this.#count)));
    try {
      return await slots.run(tenant, work);
    } finally {
      if (slots.isIdle) this.#byTenant.delete(tenant);
    }
  }
}
