import type { Scheduler } from "../ports/scheduler.ts";
import type { ByteStream } from "../ports/transport.ts";

const HEARTBEAT_MS = 2_000;

/** Sends a newline to pending JSON responses at intervals, so that proxies do not time out. One timer serves all responses. */
export class JsonHeartbeat {
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
    this.#scheduler.after(HEARTBEAT_MS, this.#beat);
  }

  remove(stream: ByteStream): void {
    this.#waiting.delete(stream);
  }

  readonly #beat = (): void => {
    for (const stream of this.#waiting) stream.write("\n");
    this.#beating = this.#waiting.size > 0;
    if (this.#beating) this.#scheduler.after(HEARTBEAT_MS, this.#beat);
  };
}
