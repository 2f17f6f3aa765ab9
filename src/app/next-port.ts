import { ServiceError } from "../model/errors.ts";
import type { TransportOpener } from "../ports/transport.ts";
import { claimPort } from "../transport/claim-port.ts";

/** The number of ports that are tried after the first port. */
const FURTHER_PORTS = 100;
const LAST_PORT = 65_535;

/**
 * Wraps a transport opener so that it tries the next port while a port is taken, up to {@link FURTHER_PORTS} ports after the first. If none
 * of these ports is free, or a port cannot be used for another reason, the promise rejects with the error of the last attempt.
 */
export function withNextPort(open: TransportOpener): TransportOpener {
  return (handlers, options) => tryPorts(options.port, (port) => open(handlers, { ...options, port }));
}

/**
 * Claims the first free port from `port` on, see {@link claimPort}. Resolves with the port.
 * @throws ServiceError `server.address` if neither `port` nor any of the {@link FURTHER_PORTS} ports after it is free, or a port cannot be
 * used for another reason
 */
export const claimNextPort = (host: string, port: number): Promise<number> =>
  tryPorts(port, (tried) => claimPort(host, tried));

async function tryPorts<T>(first: number, open: (port: number) => Promise<T>): Promise<T> {
  const last = Math.min(first + FURTHER_PORTS, LAST_PORT);
  for (let port = first; ; port++) {
    try {
      return await open(port);
    } catch (cause) {
      if (port >= last || !isTaken(cause)) throw cause;
    }
  }
}

const isTaken = (error: unknown): boolean =>
  error instanceof ServiceError &&
  error.code === "server.address" &&
  (error.cause as NodeJS.ErrnoException | undefined)?.code === "EADDRINUSE";
