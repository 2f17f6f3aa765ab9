import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

/**
 * What happens to the next data that pass: the connection is cut before a request is passed on, right after it, or before its answer is; or nothing passes
 * any more on this connection, and it stays open.
 */
export type Cut = "before-request" | "after-request" | "before-answer" | "hang";

/** A TCP proxy that cuts connections in the middle of a request. */
export class CuttingProxy {
  /** The cut that is to come; undefined after it, and while everything passes. */
  next: Cut | undefined;
  readonly #server: Server;
  readonly #open = new Set<Socket>();

  private constructor(target: number) {
    this.#server = createServer((client) => {
      const upstream = connect(target, "127.0.0.1");
      let hangs = false;
      const end = (): void => {
        client.destroy();
        upstream.destroy();
      };
      for (const socket of [client, upstream]) {
        this.#open.add(socket);
        socket.setNoDelay(true);
        socket.on("error", end);
        socket.on("close", () => {
          this.#open.delete(socket);
          if (!hangs) end();
        });
      }
      const takes = (...cuts: readonly Cut[]): Cut | undefined => {
        const { next } = this;
        if (next === undefined || !cuts.includes(next)) return undefined;
        this.next = undefined;
        return next;
      };
      client.on("data", (data) => {
        const cut = takes("before-request", "after-request", "hang");
        if (cut === "before-request") return end();
        if (cut === "hang") hangs = true;
        if (hangs) return;
        upstream.write(data, cut === "after-request" ? end : undefined);
      });
      upstream.on("data", (data) => {
        if (takes("before-answer") !== undefined) return end();
        if (!hangs) client.write(data);
      });
    });
  }

  static async to(target: number): Promise<CuttingProxy> {
    const proxy = new CuttingProxy(target);
    await new Promise<void>((resolve) => proxy.#server.listen(0, "127.0.0.1", resolve));
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Cuts all open connections. */
  cut(): void {
    for (const socket of this.#open) socket.destroy();
  }

  async close(): Promise<void> {
    this.cut();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }
}
