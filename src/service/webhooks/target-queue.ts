import type { OutboxEntry } from "../../ports/outbox.ts";
import type { Cancel } from "../../ports/scheduler.ts";

/** The largest number of concurrent attempts at one target. */
const MAX_ATTEMPTS = 8;
/** The largest number of concurrent attempts at a target that did not answer the last attempt. */
const MAX_ATTEMPTS_FAILING = 1;

/**
 * The deliveries to one target that are in memory: those that are being attempted, and a limited number of due ones, oldest first. All
 * others stay in the outbox, because there may be more than fit into memory.
 */
export class TargetQueue {
  readonly name: string;
  /** Due deliveries, oldest first. */
  readonly due: OutboxEntry[] = [];
  /** Names (tenant and id) of the deliveries that are being attempted. */
  readonly trying = new Set<string>();
  /**
   * True if the target did not answer the last attempt. Then fewer concurrent attempts are made at it, so that more of the worker's
   * concurrent attempts are left for other targets.
   */
  failing = false;
  /** True if the target has refused a delivery and has accepted none since. The refusal has been logged. */
  hasRefused = false;
  /** True if the queue is in the worker's list of queues that wait for their next attempt. */
  inLine = false;
  reading = false;
  /** Whether a delivery was stored while the queue was being read. */
  changed = false;
  #timer: Cancel | undefined;

  constructor(name: string) {
    this.name = name;
  }

  get isFull(): boolean {
    return this.trying.size >= (this.failing ? MAX_ATTEMPTS_FAILING : MAX_ATTEMPTS);
  }

  get isIdle(): boolean {
    return this.due.length === 0 && this.trying.size === 0 && this.#timer === undefined && !this.reading;
  }

  sleep(cancel: Cancel): void {
    this.wake();
    this.#timer = cancel;
  }

  wake(): void {
    this.#timer?.();
    this.#timer = undefined;
  }
}

export const deliveryName = ({ tenant, id }: OutboxEntry): string => `${tenant}\n${id}`;
