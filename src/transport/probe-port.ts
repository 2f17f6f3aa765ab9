import { type AddressInfo, createServer } from "node:net";
import { listenErrorOf } from "./listen-error.ts";

/**
 * Finds out whether a port is free, by listening on it for a moment. Resolves with the port; for port 0, with a free port that the system
 * chose.
 * @throws ServiceError `server.address` if this process cannot listen on the port
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
