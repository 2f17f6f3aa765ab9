import { TenantQueues } from "./time-budget.ts";

/** Bounds how much work of one kind runs at the same time. Work that waits begins by turns of its tenants. */
export class Slots {
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
    // Work that ends leaves its slot to the next.
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

/** The same for each tenant by itself. */
export class TenantSlots {
  readonly #count: number;
  readonly #byTenant = new Map<string, Slots>();

  constructor(count: number) {
    this.#count = count;
  }

  async run<T>(tenant: string, work: () => Promise<T>): Promise<T> {
    let slots = this.#byTenant.get(tenant);
    if (slots === undefined) this.#byTenant.set(tenant, (slots = new Slots(this.#count)));
    try {
      return await slots.run(tenant, work);
    } finally {
      if (slots.isIdle) this.#byTenant.delete(tenant);
    }
  }
}
