import { Connection } from "./load/connection.ts";
import { TextReceiver } from "./load/receivers.ts";
import { summarize, type Summary } from "./stats.ts";

/** Milliseconds between two questions. */
const EVERY = 20;

/**
 * Asks `/ok` at an even pace while a row runs, over a connection and in a process of its own: whatever the load, the
 * door must answer. Questions that a late answer kept from being asked would have met the same wait: each counts.
 */
export class Probe {
  readonly #connection: Connection;
  readonly #request: Buffer;
  readonly #samples: number[] = [];
  readonly #timer: NodeJS.Timeout;
  #waiting = false;

  private constructor(connection: Connection, host: string) {
    this.#connection = connection;
    this.#request = Buffer.from(`GET /ok HTTP/1.1\r\nhost: ${host}\r\n\r\n`);
    this.#timer = setInterval(() => this.#ask(), EVERY);
  }

  static async start(port: number): Promise<Probe> {
    const connection = await Connection.open("127.0.0.1", port, Connection.buffer());
    return new Probe(connection, `127.0.0.1:${port}`);
  }

  #ask(): void {
    if (this.#waiting) return;
    this.#waiting = true;
    const asked = performance.now();
    const answered = (failure: string | undefined) => {
      this.#waiting = false;
      const waited = failure === undefined ? performance.now() - asked : Number.POSITIVE_INFINITY;
      this.#samples.push(waited);
      if (!Number.isFinite(waited)) return;
      for (let missed = waited - EVERY; missed > EVERY; missed -= EVERY) this.#samples.push(missed);
    };
    this.#connection.send(this.#request, new TextReceiver(answered));
  }

  stop(): Summary {
    clearInterval(this.#timer);
    this.#connection.close();
    return summarize(this.#samples);
  }
}
