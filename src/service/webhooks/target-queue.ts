import type { Owed } from "../../ports/outbox.ts";
import type { Cancel } from "../../ports/scheduler.ts";

/** Tries at one place at a time; and when it gave no answer the last time. */
const ABREAST = 8;
const ABREAST_FAILING = 1;

/** What is owed to one place, as far as it is in memory: a few of those that are due, never all. */
export class Lane {
  readonly name: string;
  /** Due, oldest first. */
  readonly due: Owed[] = [];
  /** By owner and id: what is being tried now. */
  readonly trying = new Set<string>();
  /** It gave no answer the last time: it may not take the places of those that do. */
  failing = false;
  /** Stands in the line of lanes to be served. */
  inLine = false;
  reading = false;
  /** Something was stored while it was being read. */
  changed = false;
  #timer: Cancel | undefined;

  constructor(name: string) {
    this.name = name;
  }

  get isFull(): boolean {
    return this.trying.size >= (this.failing ? ABREAST_FAILING : ABREAST);
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

export const nameOf = ({ tenant, id }: Owed): string => `${tenant}\n${id}`;
