import type { Scheduler } from "./scheduler.ts";
import type { TransportOptions } from "./transport.ts";

/** Limits of request bodies. */
export interface BodyLimits {
  /** The most bytes of one body. */
  readonly maxBody: number;
  /** Limits the memory of all bodies together. */
  readonly memory: BodyMemory;
}

/** The default limit, in bytes, of all request bodies that are in memory together. */
const DEFAULT_MAX_BYTES = 128 * 1024 * 1024;

export const createBodyLimits = ({
  maxBody,
  maxBodies = DEFAULT_MAX_BYTES,
  bodyMemory,
  scheduler,
}: Pick<TransportOptions, "maxBody" | "maxBodies" | "bodyMemory" | "scheduler">): BodyLimits => ({
  maxBody,
  // One tenant may use only half of the memory, and its largest allowed body has to fit into that half.
  memory: bodyMemory ?? new BodyMemory(Math.max(maxBodies, 2 * maxBody), scheduler),
});

/**
 * Limits the memory of all request bodies that were received but not yet read. One tenant may use at most half of the
 * limit, so that another tenant can send a large body too.
 */
export class BodyMemory {
  readonly #most: number;
  readonly #scheduler: Scheduler;
  readonly #waiting: { readonly tenant: string | undefined; readonly handOver: () => void }[] = [];
  /** True while a body is being handed over or parsed. */
  #isBusy = false;
  /** The tenant of the body that was handed over last; undefined before the first body. */
  #latest: string | undefined;
  readonly #tenants = new Map<string, number>();
  #used = 0;

  constructor(most: number, scheduler: Scheduler) {
    this.#most = most;
    this.#scheduler = scheduler;
  }

  /**
   * Calls `handOver`, which passes a large body to its reader, when no other large body is being parsed. Parsing one
   * takes much time and memory. The bodies of different tenants alternate.
   */
  inTurn(tenant: string | undefined, handOver: () => void): void {
    this.#waiting.push({ tenant, handOver });
    this.#proceed();
  }

  /** Reports that the body that was handed over last has been parsed. Hands over the next large body. */
  done(): void {
    this.#isBusy = false;
    this.#proceed();
  }

  #proceed(): void {
    if (this.#isBusy || this.#waiting.length === 0) return;
    this.#isBusy = true;
    this.#scheduler.soon(this.#next);
  }

  readonly #next = (): void => {
    const other = this.#waiting.findIndex(({ tenant }) => tenant !== this.#latest);
    const [next] = this.#waiting.splice(Math.max(other, 0), 1);
    this.#latest = next?.tenant;
    next?.handOver();
  };

  /**
   * Reserves memory for a body. Returns false, and reserves nothing, if the bodies of all tenants, or the bodies of
   * this tenant, would exceed their limit.
   */
  take(bytes: number, tenant: string | undefined): boolean {
    if (this.#used + bytes > this.#most) return false;
    if (tenant !== undefined) {
      const used = (this.#tenants.get(tenant) ?? 0) + bytes;
      if (used > this.#most / 2) return false;
      this.#tenants.set(tenant, used);
    }
    this.#used += bytes;
    return true;
  }

  release(bytes: number, tenant: string | undefined): void {
    this.#used -= bytes;
    if (tenant === undefined) return;
    const used = (this.#tenants.get(tenant) ?? 0) - bytes;
    if (used > 0) this.#tenants.set(tenant, used);
    else this.#tenants.delete(tenant);
  }
}
