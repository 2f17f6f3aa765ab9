import { Agent, type OutgoingHttpHeaders, request } from "node:http";

export interface Answer {
  readonly status: number;
  /** Bytes of its body. */
  readonly bytes: number;
  /** How the answer broke off; undefined: it is complete. */
  readonly broken?: string;
  /** The start of the body. */
  readonly start: string;
  readonly end: string;
  readonly headers: { readonly [name: string]: string | string[] | undefined };
}

/** Characters kept of the start and of the end of an answer. Some answers are larger than a string can be. */
const KEPT = 64 * 1024;

/** A tenant's client. It never stores a whole answer, because some are larger than a string can be. */
export class Client {
  readonly url: string;
  readonly headers: OutgoingHttpHeaders;
  readonly #agent = new Agent({ keepAlive: true });

  constructor(url: string, headers: OutgoingHttpHeaders) {
    this.url = url;
    this.headers = headers;
  }

  /** Sends a request and reads the answer to its end. An object as the body is sent as JSON. */
  send(method: string, path: string, body?: object | string | Buffer): Promise<Answer> {
    const sent = typeof body === "string" || body instanceof Buffer ? body : JSON.stringify(body);
    const headers = {
      ...this.headers,
      ...(sent !== undefined && {
        "content-type": "application/json",
        "content-length": Buffer.byteLength(sent),
      }),
    };
    return new Promise((resolve, reject) => {
      const asking = request(this.url + path, { method, headers, agent: this.#agent }, (response) => {
        let bytes = 0;
        let start = "";
        let end = "";
        const done = (broken?: string) =>
          resolve({
            status: response.statusCode ?? 0,
            bytes,
            start,
            end,
            headers: response.headers,
            ...(broken !== undefined && { broken }),
          });
        response.on("data", (piece: Buffer) => {
          bytes += piece.length;
          if (start.length < KEPT) start = (start + piece.toString("latin1")).slice(0, KEPT);
          end = (end + piece.subarray(-KEPT).toString("latin1")).slice(-KEPT);
        });
        response.once("end", () => done());
        response.once("error", (cause) => done(cause.message));
      });
      asking.once("error", reject);
      asking.end(sent);
    });
  }

  /** Sends a request that must succeed. Resolves with the answer's JSON. */
  async json<T>(method: string, path: string, body?: object | string): Promise<T> {
    const { status, start, bytes } = await this.send(method, path, body);
    if (status >= 300) throw new Error(`${method} ${path}: ${status} ${start.slice(0, 500)}`);
    return (bytes === 0 ? undefined : JSON.parse(start)) as T;
  }

  async thread(): Promise<string> {
    const { thread_id } = await this.json<{ thread_id: string }>("POST", "/threads", {});
    return thread_id;
  }

  /** Runs a graph on a thread to its end. */
  async run(thread: string, graph: string, input: object): Promise<void> {
    const { status, start } = await this.send("POST", `/threads/${thread}/runs/wait`, {
      assistant_id: graph,
      input,
    });
    if (status !== 200 || start.includes("__error__")) {
      throw new Error(`a run of ${graph}: ${status} ${start.slice(0, 500)}`);
    }
  }

  close(): void {
    this.#agent.destroy();
  }
}

/** Checks that an answer is complete and contains a list. */
export function expectList({ status, start, end, broken, bytes }: Answer): void {
  if (status !== 200) throw new Error(`answered ${status}: ${start.slice(0, 300)}`);
  if (broken !== undefined) throw new Error(`broke off after ${bytes} bytes: ${broken}`);
  if (!start.startsWith("[") && !start.startsWith('{"'))
    throw new Error(`is no list: ${start.slice(0, 100)}`);
  if (!/[\]}]$/.test(end)) throw new Error(`has no end: ${end.slice(-100)}`);
}
