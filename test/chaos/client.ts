import { Agent, request, type IncomingMessage } from "node:http";
import { WebSocket } from "ws";

/** One event with its exact bytes and its parsed fields. */
export interface Frame {
  readonly raw: string;
  readonly id: number;
  readonly event: string;
}

export interface Answer {
  readonly status: number;
  readonly json: unknown;
}

/** How a stream ended for its reader: `end` in good order, `cut` when the connection broke. */
export interface StreamEnd {
  readonly status: number;
  readonly how: "end" | "cut" | "refused";
  readonly error?: string;
}

/** The connection broke before the answer was complete. It is unknown what the server had done by then. */
export class ConnectionLost extends Error {
  override readonly name = "ConnectionLost";
  /** True if the connection had served another request before, and was closed before a byte of this answer came. */
  wasIdle = false;
}

/** Milliseconds that a connection stays open without a request. The server closes it after 10 seconds. */
const IDLE = 4_000;

interface Asked {
  readonly method: string;
  readonly path: string;
  readonly body: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal: AbortSignal | undefined;
}

/** A plain client of one server: no retries but of requests on connections that were closed while idle, no hidden behaviour, no timeouts except its own. */
export class Client {
  readonly #port: () => number;
  readonly #isOfCluster: boolean;
  // Idle connections are closed before the server does it, or a request might come on one that is closed already.
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 512, timeout: IDLE });
  /** Requests that were answered when they were sent again, because their connection had been closed while it was idle. */
  repeated = 0;

  /**
   * `port`: a function returns the port for each request. This is the client of a cluster: it sends only reads again, because a request may
   * have been carried out in another process than the one that has ended.
   */
  constructor(port: number | (() => number)) {
    this.#isOfCluster = typeof port !== "number";
    this.#port = typeof port === "number" ? () => port : port;
  }

  close(): void {
    this.#agent.destroy();
  }

  /** @throws ConnectionLost */
  async json(
    method: string,
    path: string,
    body?: unknown,
    options: {
      readonly head?: (status: number, headers: IncomingMessage["headers"]) => void;
      /** Disconnects the client. */
      readonly signal?: AbortSignal;
    } = {},
  ): Promise<Answer> {
    const response = await this.#send({ method, path, body, signal: options.signal });
    const status = response.statusCode ?? 0;
    options.head?.(status, response.headers);
    let text = "";
    response.setEncoding("utf8");
    try {
      for await (const piece of response) text += piece as string;
    } catch (error) {
      throw new ConnectionLost(String(error), { cause: error });
    }
    // In some cases Node ends an aborted body without an error.
    if (!response.complete) throw new ConnectionLost("the answer broke off");
    const trimmed = text.trim();
    try {
      return { status, json: trimmed === "" ? undefined : (JSON.parse(trimmed) as unknown) };
    } catch {
      return { status, json: trimmed };
    }
  }

  /** Reads a stream to its end; `onFrame` receives each event as soon as it is complete. Never rejects. */
  async stream(
    method: string,
    path: string,
    body: unknown,
    headers: Readonly<Record<string, string>>,
    onHead: (status: number, headers: IncomingMessage["headers"]) => void,
    onFrame: (frame: Frame) => void,
    signal?: AbortSignal,
  ): Promise<StreamEnd> {
    let status = 0;
    try {
      const response = await this.#send({ method, path, body, headers, signal });
      status = response.statusCode ?? 0;
      onHead(status, response.headers);
      response.setEncoding("utf8");
      const frames = new Frames(onFrame);
      let text = "";
      for await (const piece of response) {
        if (status === 200) frames.add(piece as string);
        else text += piece as string;
      }
      if (!response.complete) return { status, how: "cut" };
      return status === 200 ? { status, how: "end" } : { status, how: "refused", error: text };
    } catch (error) {
      return { status, how: "cut", error: String(error) };
    }
  }

  /** The same over a WebSocket: each message as its equivalent server-sent event. Never rejects. */
  mirror(path: string, onFrame: (frame: Frame) => void): Promise<StreamEnd> {
    const socket = new WebSocket(`ws://127.0.0.1:${this.#port()}${path}`);
    socket.on("message", (bytes: Buffer) => onFrame(frameOf(bytes.toString())));
    // A close event follows.
    socket.on("error", () => undefined);
    return new Promise((resolve) => {
      socket.on("close", (code, reason) => {
        if (code === 1000) return resolve({ status: 101, how: "end" });
        if (code < 4000) return resolve({ status: 101, how: "cut", error: `${code} ${String(reason)}` });
        resolve({ status: code - 4000, how: "refused", error: String(reason) });
      });
    });
  }

  /**
   * Sends a request; once more if its connection, which had been idle, turns out to be closed. On a busy machine the client may see that too late.
   * A server that is dead refuses the second connection.
   */
  async #send(asked: Asked): Promise<IncomingMessage> {
    try {
      return await this.#sendOnce(asked);
    } catch (error) {
      if (!(error instanceof ConnectionLost) || !error.wasIdle) throw error;
      if (this.#isOfCluster && asked.method !== "GET") throw error;
      const response = await this.#sendOnce(asked);
      this.repeated++;
      return response;
    }
  }

  #sendOnce({ method, path, body, headers = {}, signal }: Asked): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const payload = body === undefined ? undefined : JSON.stringify(body);
      const outgoing = request(
        {
          host: "127.0.0.1",
          port: this.#port(),
          method,
          path,
          agent: this.#agent,
          timeout: 30_000,
          ...(signal === undefined ? {} : { signal }),
          headers: {
            ...headers,
            ...(payload === undefined
              ? {}
              : { "content-type": "application/json", "content-length": Buffer.byteLength(payload) }),
          },
        },
        resolve,
      );
      outgoing.on("timeout", () => outgoing.destroy(new Error("silent for 30 s")));
      outgoing.on("error", (error: NodeJS.ErrnoException) => {
        const lost = new ConnectionLost(error.message, { cause: error });
        if (!outgoing.reusedSocket) lost.message += ", on a new connection";
        lost.wasIdle = outgoing.reusedSocket && (error.code === "ECONNRESET" || error.code === "EPIPE");
        reject(lost);
      });
      outgoing.end(payload);
    });
  }
}

/** Returns the data of the message, byte for byte. */
function frameOf(message: string): Frame {
  const [, id, event, data] = /^\{"id":"(\d+)","event":"([^"]*)","data":(.*)\}$/s.exec(message) ?? [];
  return { raw: `event: ${event}\ndata: ${data}\nid: ${id}\n\n`, id: Number(id), event: event ?? "" };
}

/** Splits a stream's text into events. Comment lines are left out, because they belong to no event. */
export class Frames {
  #rest = "";
  readonly #onFrame: (frame: Frame) => void;

  constructor(onFrame: (frame: Frame) => void) {
    this.#onFrame = onFrame;
  }

  add(text: string): void {
    this.#rest += text;
    for (;;) {
      const end = this.#rest.indexOf("\n\n");
      if (end < 0) return;
      const raw = this.#rest.slice(0, end + 2);
      this.#rest = this.#rest.slice(end + 2);
      this.#take(raw);
    }
  }

  #take(raw: string): void {
    const lines = raw.split("\n").filter((line) => line !== "" && !line.startsWith(":"));
    const field = (name: string) =>
      lines
        .find((line) => line.startsWith(`${name}:`))
        ?.slice(name.length + 1)
        .trimStart();
    const id = field("id");
    if (lines.length === 0) return;
    this.#onFrame({
      raw: `${lines.join("\n")}\n\n`,
      id: id === undefined ? Number.NaN : Number(id),
      event: field("event") ?? "message",
    });
  }
}
