import { ServiceError } from "../src/model/errors.ts";

interface QueueLimits {
  readonly maxQueued: number;
  readonly maxQueuedPerTenant: number;
  readonly maxQueuedBytes: number;
  readonly maxQueuedBytesPerTenant: number;
}

/** A run that has not started. */
interface QueuedRun {
  readonly tenant: string;
  /** Bytes that its input takes in memory. */
  readonly bytes: number;
}

/** Numbers of runs, and bytes of their inputs. */
interface Sum {
  readonly runs: number;
  readonly bytes: number;
}

const NONE: Sum = { runs: 0, bytes: 0 };

/** Runs that have not started, and the memory that their inputs take: in all and by tenant. */
export class QueuedRuns {
  readonly #limits: QueueLimits;
  readonly #runs = new Map<string, QueuedRun>();
  readonly #tenants = new Map<string, Sum>();
  #bytes = 0;

  constructor(limits: QueueLimits) {
    this.#limits = limits;
  }

  get size(): number {
    return this.#runs.size;
  }

  /**
   * Checks whether one more run may wait.
   * @throws ServiceError `server.busy` when too many wait, or when their inputs take too much memory. One input may exceed that limit
   */
  checkRoom({ tenant, bytes }: QueuedRun): void {
    const { maxQueued, maxQueuedPerTenant, maxQueuedBytes, maxQueuedBytesPerTenant } = this.#limits;
    const own = this.#tenants.get(tenant) ?? NONE;
    if (this.size >= maxQueued || own.runs >= maxQueuedPerTenant) {
      const count = this.size >= maxQueued ? `${this.size}` : `${own.runs} of this tenant's`;
      throw new ServiceError("server.busy", `${count} runs are waiting already; try again later`);
    }
    const isOver = (taken: number, most: number) => taken > 0 && taken + bytes > most;
    if (isOver(this.#bytes, maxQueuedBytes) || isOver(own.bytes, maxQueuedBytesPerTenant)) {
      const message = "The inputs of runs that are waiting take too much memory; try again later";
      throw new ServiceError("server.busy", message);
    }
  }

  /** Bytes of the input of a run; undefined when it is not queued. */
  inputBytes(run: string): number | undefined {
    return this.#runs.get(run)?.bytes;
  }

  add(run: string, queued: QueuedRun): void {
    if (this.#runs.has(run)) return;
    this.#runs.set(run, queued);
    this.#count(queued, 1);
  }

  delete(run: string): void {
    const queued = this.#runs.get(run);
    if (queued === undefined) return;
    this.#runs.delete(run);
    this.#count(queued, -1);
  }

  #count({ tenant, bytes }: QueuedRun, by: 1 | -1): void {
    this.#bytes += by * bytes;
    const before = this.#tenants.get(tenant) ?? NONE;
    const sum = { runs: before.runs + by, bytes: before.bytes + by * bytes };
    if (sum.runs > 0) this.#tenants.set(tenant, sum);
    else this.#tenants.delete(tenant);
  }
}
