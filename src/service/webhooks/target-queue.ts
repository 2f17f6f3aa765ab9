import type { OutboxEntry } from "../../ports/outbox.ts";
import type { Cancel } from "../../ports/scheduler.ts";

/** The largest number of concurrent attempts at one target. */
const MAX_ATTEMPTS = 8;
/** The largest number of concurrent attempts at a target that did not answer the last attempt. */
const MAX_ATTEMPTS_FAILING = 1;

/** The deliveries to one target that are in memory: only the first of those that are due, never all. */
export class TargetQueue {
  readonly name: string;
  /** Due deliveries, oldest first. */
  readonly due: OutboxEntry[] = [];
  /** Names (owner and id) of the deliveries that are being attempted. */
  readonly trying = new Set<string>();
  /** The target did not answer the last attempt. Its attempts must not use up the slots of others. */
  failing = false;
  /** Whether the queue waits in the worker's line for a slot. */
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
