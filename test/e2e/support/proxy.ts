import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { onTestFinished } from "vitest";

export interface Proxy {
  readonly url: string;
  /** The heads of the forwarded requests, in order: request line and headers, unchanged. */
  readonly requests: readonly string[];
  /** Destroys every open connection. */
  cut(): void;
}

/**
 * A proxy between a client and a server that forwards bytes unchanged, except that of the first event stream only the
 * first event passes.
 */
export async function proxyTo(url: string): Promise<Proxy> {
  const { hostname, port } = new URL(url);
  const requests: string[] = [];
  const sockets = new Set<Socket>();
  let holding = true;
  const server = createServer((client) => {
    const upstream = connect(Number(port), hostname);
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(socket);
      // This proxy cuts connections on purpose.
      socket.on("error", () => undefined);
      socket.on("close", () => {
        sockets.delete(socket);
        other.destroy();
      });
    }
    client.on("data", (bytes) => {
      for (const [head] of bytes.toString("latin1").matchAll(/^(?:GET|POST) [\s\S]*?\r\n\r\n/gm)) {
        requests.push(head);
      }
      upstream.write(bytes);
    });
    let answered = "";
    let held = false;
    upstream.on("data", (bytes) => {
      if (!holding) return client.write(bytes);
      if (held) return;
      const before = answered.length;
      answered += bytes.toString("latin1");
      const isStream = answered.includes("text/event-stream");
      const end = isStream ? answered.indexOf("\n\n", answered.indexOf("event: ")) : -1;
      held = end >= 0 && answered.includes("event: ");
      return client.write(held ? bytes.subarray(0, end + 2 - before) : bytes);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const cut = () => {
    holding = false;
    for (const socket of sockets) socket.destroy();
  };
  onTestFinished(() => {
    cut();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests, cut };
}
