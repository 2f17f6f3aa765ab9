import { type AddressInfo, createServer } from "node:net";
import { listenErrorOf } from "./listen-error.ts";

/**
 * Listens for a moment, to find out whether a port is free. Resolves with the port, or for 0, with any free one.
 * @throws ServiceError `server.address`
 */
export function probePort(host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once("error", (cause) => reject(listenErrorOf(host, port, cause)));
    probe.listen({ host, port, exclusive: true }, () => {
      const { port: free } = probe.address() as AddressInfo;
      probe.close(() => resolve(free));
    });
  });
}
