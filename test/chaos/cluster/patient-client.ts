import { AsyncLocalStorage } from "node:async_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { Client, ConnectionLost, type Answer, type Frame, type StreamEnd } from "../client.ts";

/** Milliseconds for which requests are sent again while a shard moves. */
const PATIENCE = 30_000;
const PAUSE = 100;

/** A request whose connection was cut. */
export interface Cut {
  /** The port of the node to which it was connected. */
  readonly port: number;
  /** When the request was sent, and when its connection was cut: milliseconds of the monotonic clock. */
  readonly sent: number;
  readonly at: number;
  readonly request: string;
  readonly error: string;
}

/**
 * A client that sends a request again that was refused because a shard has no owner at the moment, and goes on with a broken stream. It
 * keeps a list of the connections that were cut meanwhile.
 */
export class PatientClient extends Client {
  readonly cuts: Cut[] = [];
  /** The ports to which a request was sent. */
  readonly #ports: AsyncLocalStorage<number[]>;

  constructor(pick: () => number) {
    const ports = new AsyncLocalStorage<number[]>();
    super(() => {
      const port = pick();
      ports.getStore()?.push(port);
      return port;
    });
    this.#ports = ports;
  }

  override async json(...request: Parameters<Client["json"]>): Promise<Answer> {
    const until = performance.now() + PATIENCE;
    for (;;) {
      const [ports, sent]: [number[], number] = [[], performance.now()];
      try {
        const answer = await this.#ports.run(ports, () => super.json(...request));
        if (answer.status !== 503 || performance.now() > until) return answer;
      } catch (error) {
        if (!(error instanceof ConnectionLost) || request[0] !== "GET" || performance.now() > until)
          throw error;
        this.#noteCut(ports, sent, `${request[0]} ${request[1]}`, error.message);
      }
      await sleep(PAUSE);
    }
  }

  /** A stream that is read and breaks goes on after the last event, as in the SDKs: its process may have handed its shard over. */
  override async stream(...request: Parameters<Client["stream"]>): Promise<StreamEnd> {
    const [method, path, body, headers, onHead, onFrame, signal] = request;
    const until = performance.now() + PATIENCE;
    let after = headers["last-event-id"];
    const take = (frame: Frame) => {
      after = String(frame.id);
      onFrame(frame);
    };
    for (;;) {
      const from = after === undefined ? headers : { ...headers, "last-event-id": after };
      const [ports, sent]: [number[], number] = [[], performance.now()];
      const end = await this.#ports.run(ports, () =>
        super.stream(method, path, body, from, onHead, take, signal),
      );
      const isOver = end.status !== 503 && (end.how !== "cut" || method !== "GET");
      if (isOver || performance.now() > until) return end;
      if (end.how === "cut")
        this.#noteCut(ports, sent, `${method} ${path}`, end.error ?? "the stream broke off");
      await sleep(PAUSE);
    }
  }

  #noteCut(ports: readonly number[], sent: number, request: string, error: string): void {
    this.cuts.push({ port: ports.at(-1) ?? 0, sent, at: performance.now(), request, error });
  }
}
