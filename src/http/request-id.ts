import type { HttpRequest } from "../ports/transport.ts";

/** Ids that are safe to write into a log line and a header. */
const SANE = /^[\w.:@=+/-]{1,128}$/;

/** The request id that the client, or a proxy before this server, has set; otherwise a new one. */
export function requestId(request: HttpRequest, newId: () => string): string {
  const given = request.header("x-request-id");
  return given !== undefined && SANE.test(given) ? given : newId();
}
