import type { HttpRequest } from "../ports/transport.ts";

/** What may go into a log line and a header as it is. */
const SANE = /^[\w.:@=+/-]{1,128}$/;

/** The name that a client, or a proxy before us, gave its request; else a new one. */
export function requestId(request: HttpRequest, newId: () => string): string {
  const given = request.header("x-request-id");
  return given !== undefined && SANE.test(given) ? given : newId();
}
