import { unpack } from "msgpackr";
import { onTestFinished } from "vitest";
import { WebSocket } from "ws";

/** An event frame of a run or a thread. */
export interface Frame {
  readonly id: string;
  readonly event: string;
  readonly data: unknown;
  readonly run_id?: string;
}

/** The answer to a command. */
export interface Told {
  readonly type: "ack" | "error";
  readonly id: unknown;
  readonly run_id?: string | null;
  readonly status?: number;
  readonly detail?: string;
}

export interface Closed {
  readonly code: number;
  readonly reason: string;
}

/** A WebSocket and everything received over it. */
export class Dialed {
  readonly socket: WebSocket;
  readonly frames: Frame[] = [];
  readonly answers: Told[] = [];
  /** All messages that are texts. */
  readonly texts: string[] = [];
  readonly opened: Promise<void>;
  readonly closed: Promise<Closed>;
  /** The number of messages of the wrong kind (text or bytes) for the subprotocol. */
  odd = 0;
  #changed: () => void = () => undefined;

  constructor(url: string, { headers = {}, packed = false }: DialOptions = {}) {
    const protocols = packed ? ["heddle.msgpack"] : [];
    this.socket = new WebSocket(url.replace("http", "ws"), protocols, { headers, perMessageDeflate: false });
    this.opened = new Promise((resolve, reject) => {
      this.socket.on("open", () => resolve());
      this.socket.on("error", reject);
    });
    this.opened.catch(() => undefined);
    this.closed = new Promise((resolve) => {
      this.socket.on("close", (code, reason) => {
        resolve({ code, reason: String(reason) });
        this.#changed();
      });
    });
    this.socket.on("message", (bytes: Buffer, isBinary) => {
      if (isBinary !== packed) this.odd++;
      if (!isBinary) this.texts.push(String(bytes));
      const message = (isBinary ? unpack(bytes) : JSON.parse(bytes.toString())) as Frame | Told;
      if ("type" in message) this.answers.push(message);
      else this.frames.push(message);
      this.#changed();
    });
  }

  /** Waits until the received messages match. */
  async until(isIt: (dialed: this) => boolean): Promise<this> {
    while (!isIt(this)) {
      if (this.socket.readyState === WebSocket.CLOSED) {
        throw new Error(`closed before: ${JSON.stringify(await this.closed)}`);
      }
      await new Promise<void>((resolve) => (this.#changed = resolve));
    }
    return this;
  }

  send(command: unknown): void {
    this.socket.send(typeof command === "string" ? command : JSON.stringify(command));
  }

  /** Sends a command and waits for its answer. */
  async ask(command: { readonly id: string | number; readonly [field: string]: unknown }): Promise<Told> {
    this.send(command);
    const answer = () => this.answers.find(({ id }) => id === command.id);
    await this.until(() => answer() !== undefined);
    return answer() as Told;
  }
}

interface DialOptions {
  readonly headers?: Readonly<Record<string, string>>;
  /** True: use the subprotocol `heddle.msgpack`. */
  readonly packed?: boolean;
}

/** Opens a WebSocket that is closed after the test. */
export async function dial(url: string, options?: DialOptions): Promise<Dialed> {
  const dialed = new Dialed(url, options);
  onTestFinished(() => dialed.socket.terminate());
  await dialed.opened;
  return dialed;
}
