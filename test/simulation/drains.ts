import type { NodeCall } from "../../src/ports/engine.ts";

/** A running node body. */
interface Body {
  readonly run: string;
  readonly task: string;
  readonly node: string;
  readonly thread: string;
}

const nameOf = ({ run, task }: Pick<Body, "run" | "task">) => `${run} ${task}`;

/** Node bodies during a stop of the server: which of them run, and which ended in time to be stored. */
export class Drains {
  readonly #running = new Set<Body>();
  /** Tasks that returned in this life before the drain's deadline. */
  readonly #returned = new Set<string>();
  /** Tasks that had returned when the last life stopped gracefully: they must not run again. */
  #done: ReadonlySet<string> = new Set();
  /** The deadline of the drain. */
  #until = Number.POSITIVE_INFINITY;
  /** When the last body ended, or the drain began: whichever is later. */
  #latest = 0;

  /** When the drain had nothing left to wait for. */
  get latest(): number {
    return this.#latest;
  }

  running(): readonly Body[] {
    return [...this.#running];
  }

  begun({ run, task, node, thread }: NodeCall): Body {
    const body = { run, task, node, thread };
    this.#running.add(body);
    return body;
  }

  ended(body: Body, isDone: boolean, now: number): void {
    // The body may belong to an earlier life.
    if (!this.#running.delete(body)) return;
    this.#latest = now;
    if (isDone && now < this.#until) this.#returned.add(nameOf(body));
  }

  isDone(call: NodeCall): boolean {
    return this.#done.has(nameOf(call));
  }

  /** The server begins to stop. */
  begin(now: number, ms: number): void {
    this.#until = now + ms;
    this.#latest = now;
  }

  /** The life has ended. */
  over(inGoodOrder: boolean): void {
    this.#running.clear();
    this.#done = inGoodOrder ? new Set(this.#returned) : new Set();
    this.#returned.clear();
    this.#until = Number.POSITIVE_INFINITY;
  }
}
