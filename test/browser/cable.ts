import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { onTestFinished } from "vitest";

/** A proxy between a page and its server that can be disconnected and reconnected. */
export interface Cable {
  readonly url: string;
  /** Breaks every connection, and refuses new ones. */
  pull(): void;
  plug(): void;
}

export async function cableTo(url: string): Promise<Cable> {
  const { hostname, port } = new URL(url);
  const sockets = new Set<Socket>();
  let isIn = true;
  const server = createServer((client) => {
    if (!isIn) return void client.destroy();
    const upstream = connect(Number(port), hostname);
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(socket);
      // Connections are cut on purpose.
      socket.on("error", () => undefined);
      socket.on("close", () => {
        sockets.delete(socket);
        other.destroy();
      });
      socket.pipe(other);
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const cut = () => {
    for (const socket of sockets) socket.destroy();
  };
  onTestFinished(() => {
    cut();
    server.close();
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    pull() {
      isIn = false;
      cut();
    },
    plug() {
      isIn = true;
    },
  };
}
