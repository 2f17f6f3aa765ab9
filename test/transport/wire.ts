import { connect, type Socket } from "node:net";

/** One connection, on which the test sends and receives raw bytes. */
export class Wire {
  readonly socket: Socket;
  /** The received data in pieces: joined only when it is read, since some of it is large. */
  #pieces: string[] = [];
  #tail = "";
  bytes = 0;
  #wake: () => void = () => undefined;
  closed = false;

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.on("data", (piece: Buffer) => {
      const text = piece.toString("latin1");
      this.#pieces.push(text);
      this.#tail = (this.#tail + text).slice(-64);
      this.bytes += piece.length;
      this.#wake();
    });
    socket.on("error", () => undefined);
    socket.on("close", () => {
      this.closed = true;
      this.#wake();
    });
  }

  static open(port: number): Promise<Wire> {
    return new Promise((resolve, reject) => {
      const socket = connect({ port, host: "127.0.0.1", noDelay: true });
      socket.once("error", reject);
      socket.once("connect", () => resolve(new Wire(socket)));
    });
  }

  get text(): string {
    if (this.#pieces.length > 1) this.#pieces = [this.#pieces.join("")];
    return this.#pieces[0] ?? "";
  }

  send(text: string): this {
    this.socket.write(text, "latin1");
    return this;
  }

  /** Resolves with the received data when `there` holds or the connection is closed. */
  async until(there: (text: string) => boolean): Promise<string> {
    await this.#wait(() => there(this.text));
    return this.text;
  }

  /** The same for data that ends with a short text, however long it is. */
  async untilEnd(end: string): Promise<string> {
    await this.#wait(() => this.#tail.endsWith(end));
    return this.text;
  }

  /** The same for a number of bytes. */
  async untilBytes(count: number): Promise<string> {
    await this.#wait(() => this.bytes >= count);
    return this.text;
  }

  async #wait(there: () => boolean): Promise<void> {
    while (!this.closed && !there()) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  /** Everything that is received until the connection closes. */
  rest(): Promise<string> {
    return this.#wait(() => false).then(() => this.text);
  }

  destroy(): void {
    this.socket.destroy();
  }
}

/** The status, headers and body of a response with chunked encoding or a length. */
export function parse(text: string): { status: number; headers: Map<string, string>; body: string } {
  const end = text.indexOf("\r\n\r\n");
  const [line = "", ...fields] = text.slice(0, end).split("\r\n");
  const headers = new Map(
    fields.map((field) => {
      const colon = field.indexOf(":");
      return [field.slice(0, colon).toLowerCase(), field.slice(colon + 1).trim()] as const;
    }),
  );
  const raw = text.slice(end + 4);
  const body = headers.get("transfer-encoding") === "chunked" ? dechunk(raw) : raw;
  return { status: Number(line.split(" ")[1]), headers, body };
}

function dechunk(raw: string): string {
  const parts: string[] = [];
  for (let at = 0; at < raw.length;) {
    const line = raw.indexOf("\r\n", at);
    if (line < 0) break;
    const size = Number.parseInt(raw.slice(at, line), 16);
    if (!(size > 0)) break;
    parts.push(raw.slice(line + 2, line + 2 + size));
    at = line + 2 + size + 2;
  }
  return parts.join("");
}
