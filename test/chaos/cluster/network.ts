import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { nodeHost, readRoutedAddress } from "./node-hosts.ts";

/**
 * How a link is broken. `cut`: its connections are closed, and new ones too. `silent`: nothing passes, and no connection is closed; what was
 * sent meanwhile arrives afterwards, as after a partition.
 */
export type Break = "cut" | "silent";

/** The two ends of a connection that a proxy passes on, and the name of its link. */
interface Connection {
  readonly link: string;
  readonly sockets: readonly [Socket, Socket];
}

/** TCP proxies between nodes, and between each node and the database. Each link can be broken and mended. */
export class Network {
  readonly #broken = new Map<string, Break>();
  readonly #connections = new Set<Connection>();
  readonly #servers: Server[] = [];

  /** The name of the link of two nodes, in both directions. */
  static between(one: number, other: number): string {
    return `${Math.min(one, other)}-${Math.max(one, other)}`;
  }

  static toDatabase(node: number): string {
    return `${node}-database`;
  }

  /** Starts the router for connections between nodes, and returns its port. */
  route(): Promise<number> {
    return this.#listen("0.0.0.0", (address) => {
      const { from, to, port } = readRoutedAddress(address);
      return { link: Network.between(from, to), host: nodeHost(to), port };
    });
  }

  /** Starts the proxy through which a node reaches the database, and returns its port. */
  proxyDatabase(node: number, port: number): Promise<number> {
    return this.#listen("127.0.0.1", () => ({ link: Network.toDatabase(node), host: "127.0.0.1", port }));
  }

  break(link: string, how: Break): void {
    this.#broken.set(link, how);
    for (const { sockets } of this.#of(link)) {
      for (const socket of sockets) {
        if (how === "cut") socket.destroy();
        else socket.pause();
      }
    }
  }

  mend(link: string): void {
    this.#broken.delete(link);
    for (const { sockets } of this.#of(link)) for (const socket of sockets) socket.resume();
  }

  close(): void {
    for (const { sockets } of this.#connections) for (const socket of sockets) socket.destroy();
    for (const server of this.#servers) server.close();
  }

  *#of(link: string): Generator<Connection> {
    for (const connection of this.#connections) if (connection.link === link) yield connection;
  }

  async #listen(
    host: string,
    targetOf: (address: string) => { readonly link: string; readonly host: string; readonly port: number },
  ): Promise<number> {
    const server = createServer({ pauseOnConnect: true, noDelay: true }, (client) => {
      const target = targetOf(client.localAddress ?? "");
      if (this.#broken.get(target.link) === "cut") return void client.destroy();
      const upstream = connect({ host: target.host, port: target.port, noDelay: true });
      const connection: Connection = { link: target.link, sockets: [client, upstream] };
      this.#connections.add(connection);
      for (const [socket, other] of [
        [client, upstream],
        [upstream, client],
      ] as const) {
        // The other end is closed too.
        socket.on("error", () => undefined);
        socket.on("close", () => {
          this.#connections.delete(connection);
          other.destroy();
        });
        socket.on("end", () => other.end());
        socket.on("data", (bytes) => {
          if (!other.write(bytes)) socket.pause();
        });
        socket.on("drain", () => this.#goOn(target.link, other));
      }
      this.#goOn(target.link, client);
      if (this.#broken.get(target.link) === "silent") upstream.pause();
    });
    this.#servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, host, resolve));
    return (server.address() as AddressInfo).port;
  }

  #goOn(link: string, socket: Socket): void {
    if (this.#broken.has(link)) socket.pause();
    else socket.resume();
  }
}
