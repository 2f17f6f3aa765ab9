import { isIPv6 } from "node:net";
import { ServiceError } from "../model/errors.ts";

/**
 * Creates the error for an address at which the server cannot listen.
 * @param cause the error of the operating system, which becomes the error's `cause`; undefined if there is none
 */
export function listenErrorOf(host: string, port: number, cause?: NodeJS.ErrnoException): ServiceError {
  const where = `${isIPv6(host) ? `[${host}]` : host}:${port}`;
  return new ServiceError("server.address", `Cannot listen at ${where}: ${reasonOf(host, port, cause)}`, {
    cause,
  });
}

function reasonOf(host: string, port: number, cause: NodeJS.ErrnoException | undefined): string {
  switch (cause?.code) {
    case "EADDRINUSE":
      return `port ${port} is taken`;
    case "EACCES":
      return port < 1024
        ? `this user may not use port ${port}; ports below 1024 are for root, or need the capability CAP_NET_BIND_SERVICE`
        : `this user may not use port ${port}`;
    case "ENOTFOUND":
      return `there is no host named "${host}"`;
    case "EAI_AGAIN":
      return `the address of "${host}" cannot be found: no name server answers`;
    case "EADDRNOTAVAIL":
      return `${host} is not an address of this machine`;
    case undefined:
      return "the port is taken, or not allowed";
    default:
      return cause?.message ?? "";
  }
}
