import type { Scheduler } from "../ports/scheduler.ts";
import type { TransportOptions } from "../ports/transport.ts";

/** What bounds a body: the bytes that it may have, and those of all. */
export interface BodyLimits {
  readonly maxBody: number;
  readonly memory: BodyMemory;
}

/** Bytes of all bodies; at least two of the largest size fit, one for each of two tenants. */
const MOST = 256 * 1024 * 1024;

export const bodyLimits = ({
  maxBody,
  maxBodies = MOST,
  scheduler,
}: Pick<TransportOptions, "maxBody" | "maxBodies" | "scheduler">): BodyLimits => ({
  maxBody,
  memory: new BodyMemory(Math.max(maxBodies, 2 * maxBody), scheduler),
});

/**
 * Bounds the bytes of all bodies that have come and have not been read. One tenant may use half of them, so that another one can
 * send something large, too.
 */
export class BodyMemory {
  readonly #most: number;
  readonly #scheduler: Scheduler;
  #waiting: (() => void)[] = [];
  readonly #tenants = new Map<string, number>();
  #used = 0;

  constructor(most: number, scheduler: Scheduler) {
    this.#most = most;
    this.#scheduler = scheduler;
  }

  /** Hands a large body over: one in each turn of the event loop, since its reader parses it at once. */
  inTurn(handOver: () => void): void {
    if (this.#waiting.push(handOver) === 1) this.#scheduler.soon(this.#next);
  }

  readonly #next = (): void => {
    const [handOver] = this.#waiting;
    this.#waiting = this.#waiting.slice(1);
    if (this.#waiting.length > 0) this.#scheduler.soon(this.#next);
    handOver?.();
  };

  /** False: there is no room, and nothing is taken. */
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
