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
  /** The bytes that the input of the run takes in memory. */
  readonly bytes: number;
}

/** A number of runs, and the bytes of all their inputs. */
interface Sum {
  readonly runs: number;
  readonly bytes: number;
}

const NONE: Sum = { runs: 0, bytes: 0 };

/** Counts the runs that have not started and the memory that their inputs take, in total and for each tenant. */
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
   * Checks whether one more run may wait. An input that exceeds the limit of bytes by itself may wait if no other input
   * does.
   * @throws ServiceError `server.busy` when too many runs wait, or when their inputs take too much memory
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

  /** The bytes of the input of a queued run; undefined when the run is not queued. */
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
