import type { HttpRequest } from "../ports/transport.ts";

/** Ids that are safe to write into a log line and a header. */
const SANE = /^[\w.:@=+/-]{1,128}$/;

/** The `x-request-id` header that the client or a proxy has set, if it is safe ({@link SANE}); otherwise a new id. */
export function requestId(request: HttpRequest, newId: () => string): string {
  const given = request.header("x-request-id");
  return given !== undefined && SANE.test(given) ? given : newId();
}
