import { ServiceError } from "../model/errors.ts";
import type { TransportOpener } from "../ports/transport.ts";

/** Ports that are tried after the first one. */
const FURTHER_PORTS = 100;
const LAST_PORT = 65_535;

/**
 * An opener that takes the next port while one is taken. It fails like `open` when none of 100 further ports is free,
 * and when a port cannot be used for another reason.
 */
export function withNextPort(open: TransportOpener): TransportOpener {
  return async (handlers, options) => {
    const last = Math.min(options.port + FURTHER_PORTS, LAST_PORT);
    for (let port = options.port; ; port++) {
      try {
        return await open(handlers, { ...options, port });
      } catch (cause) {
        if (port >= last || !isTaken(cause)) throw cause;
      }
    }
  };
}

const isTaken = (error: unknown): boolean =>
  error instanceof ServiceError &&
  error.code === "server.address" &&
  (error.cause as NodeJS.ErrnoException | undefined)?.code === "EADDRINUSE";
