import { ServiceError } from "../model/errors.ts";
import type { TransportOpener } from "../ports/transport.ts";
import { probePort } from "../transport/probe-port.ts";

/** The number of ports that are tried after the first one. */
const FURTHER_PORTS = 100;
const LAST_PORT = 65_535;

/**
 * Makes an opener that tries the next port as long as the port is taken. The opener fails like `open` when none of 100 further ports is
 * free, or when a port cannot be used for another reason.
 */
export function withNextPort(open: TransportOpener): TransportOpener {
  return (handlers, options) => tryPorts(options.port, (port) => open(handlers, { ...options, port }));
}

/** Resolves with the first port from `port` on that is free. @throws ServiceError `server.address` */
export const nextFreePort = (host: string, port: number): Promise<number> =>
  tryPorts(port, (tried) => probePort(host, tried));

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
