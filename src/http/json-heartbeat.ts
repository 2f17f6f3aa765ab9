import type { Scheduler } from "../ports/scheduler.ts";
import type { ByteStream } from "../ports/transport.ts";

const EVERY = 2_000;

/** Sends a blank to answers that are waited for, so that nobody between takes them for dead. One timer for all of them. */
export class Keepalive {
  readonly #scheduler: Scheduler;
  readonly #waiting = new Set<ByteStream>();
  #beating = false;

  constructor(scheduler: Scheduler) {
    this.#scheduler = scheduler;
  }

  add(stream: ByteStream): void {
    this.#waiting.add(stream);
    if (this.#beating) return;
    this.#beating = true;
    this.#scheduler.after(EVERY, this.#beat);
  }

  remove(stream: ByteStream): void {
    this.#waiting.delete(stream);
  }

  readonly #beat = (): void => {
    // Parsers of JSON skip it.
    for (const stream of this.#waiting) stream.write("\n");
    // The timer outlives who it was made for: made anew for each answer, it would cost more than it does.
    this.#beating = this.#waiting.size > 0;
    if (this.#beating) this.#scheduler.after(EVERY, this.#beat);
  };
}
