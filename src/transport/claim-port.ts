import { createServer } from "node:net";
import { listenErrorOf } from "./listen-error.ts";
import { probePort } from "./probe-port.ts";

/** The most ports that are tried for port 0. */
const MAX_TRIES = 10;

/**
 * Claims a free port for the processes of this server, which will share it. Resolves with the port; for port 0, with a free port that the
 * system chose. The claim ends with this process. Without the claim, a server that starts at the same moment could share the port as well,
 * and each server would get requests of the other.
 * @throws ServiceError `server.address` if the port is taken, or claimed
 */
export async function claimPort(host: string, port: number): Promise<number> {
  for (let tries = MAX_TRIES; ; tries--) {
    // oxlint-disable-next-line no-await-in-loop -- tries one port after the other
    const free = await probePort(host, port);
    // oxlint-disable-next-line no-await-in-loop -- tries one port after the other
    const refusal = await claim(`${host}:${free}`);
    if (refusal === undefined) return free;
    if (port !== 0 || tries <= 1) throw listenErrorOf(host, free, refusal);
  }
}

/**
 * Claims a name among the processes of this machine, by an abstract Unix socket, which Linux removes when the process ends. Other systems
 * have no such sockets, and there nothing is claimed. Resolves with the error if the name is claimed.
 */
function claim(name: string): Promise<Error | undefined> {
  if (process.platform !== "linux") return Promise.resolve(undefined);
  return new Promise((resolve) => {
    const server = createServer((socket) => socket.destroy());
    server.unref();
    server.once("error", resolve);
    server.listen(`\0heddle/${name}`, () => resolve(undefined));
  });
}
