import { Connection } from "./load/connection.ts";
import { TextReceiver } from "./load/receivers.ts";
import { summarize, type Summary } from "./stats.ts";

/** Milliseconds between two requests. */
const INTERVAL_MS = 20;

/**
 * Requests `/ok` every {@link INTERVAL_MS} while a row runs, over a connection of its own, to measure how long the
 * loaded server takes to respond. While a response is late, no further requests are sent; the time that each of them
 * would have waited is added to the samples.
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
    this.#timer = setInterval(() => this.#ask(), INTERVAL_MS);
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
      for (let missed = waited - INTERVAL_MS; missed > INTERVAL_MS; missed -= INTERVAL_MS)
        this.#samples.push(missed);
    };
    this.#connection.send(this.#request, new TextReceiver(answered));
  }

  stop(): Summary {
    clearInterval(this.#timer);
    this.#connection.close();
    return summarize(this.#samples);
  }
}
