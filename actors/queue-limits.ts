import { ServiceError } from "../src/model/errors.ts";

interface QueueLimits {
  readonly maxQueued: number;
  readonly maxQueuedPerTenant: number;
}

/** Runs that have not started, counted in all and by tenant. */
export class QueuedRuns {
  readonly #limits: QueueLimits;
  readonly #tenants = new Map<string, string>();
  readonly #counts = new Map<string, number>();

  constructor(limits: QueueLimits) {
    this.#limits = limits;
  }

  get size(): number {
    return this.#tenants.size;
  }

  /** @throws ServiceError `server.busy` when no more may wait */
  checkRoom(tenant: string): void {
    const { maxQueued, maxQueuedPerTenant } = this.#limits;
    const [all, own] = [this.size, this.#counts.get(tenant) ?? 0];
    if (all >= maxQueued || own >= maxQueuedPerTenant) {
      const count = all >= maxQueued ? `${all}` : `${own} of this tenant's`;
      throw new ServiceError("server.busy", `${count} runs are waiting already; try again later`);
    }
  }

  add(run: string, tenant: string): void {
    if (this.#tenants.has(run)) return;
    this.#tenants.set(run, tenant);
    this.#counts.set(tenant, (this.#counts.get(tenant) ?? 0) + 1);
  }

  delete(run: string): void {
    const tenant = this.#tenants.get(run);
    if (tenant === undefined) return;
    this.#tenants.delete(run);
    const left = (this.#counts.get(tenant) ?? 0) - 1;
    if (left > 0) this.#counts.set(tenant, left);
    else this.#counts.delete(tenant);
  }
}
