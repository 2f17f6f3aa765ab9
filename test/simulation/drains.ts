import type { NodeCall } from "../../src/ports/engine.ts";

/** A node body at work. */
interface Body {
  readonly run: string;
  readonly task: string;
  readonly node: string;
  readonly thread: string;
}

const nameOf = ({ run, task }: Pick<Body, "run" | "task">) => `${run} ${task}`;

/** Node bodies as the server stops: which of them run, and which have ended in time to be stored. */
export class Drains {
  readonly #running = new Set<Body>();
  /** Tasks that have returned in this life, before the time of its drain was up. */
  readonly #returned = new Set<string>();
  /** Tasks that had returned when the last life stopped in good order: they are not to be done again. */
  #done: ReadonlySet<string> = new Set();
  /** When the drain's time is up. */
  #until = Number.POSITIVE_INFINITY;

  running(): readonly Body[] {
    return [...this.#running];
  }

  begun({ run, task, node, thread }: NodeCall): Body {
    const body = { run, task, node, thread };
    this.#running.add(body);
    return body;
  }

  ended(body: Body, isDone: boolean, now: number): void {
    // It may be a body of an earlier life.
    if (this.#running.delete(body) && isDone && now < this.#until) this.#returned.add(nameOf(body));
  }

  isDone(call: NodeCall): boolean {
    return this.#done.has(nameOf(call));
  }

  /** The server begins to stop. */
  begin(now: number, ms: number): void {
    this.#until = now + ms;
  }

  /** The life is over. */
  over(inGoodOrder: boolean): void {
    this.#running.clear();
    this.#done = inGoodOrder ? new Set(this.#returned) : new Set();
    this.#returned.clear();
    this.#until = Number.POSITIVE_INFINITY;
  }
}
