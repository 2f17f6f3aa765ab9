import type { JsonObject } from "../model/json.ts";
import { storedUserOf } from "../model/auth-user.ts";
import { type AuthenticatedClient, STREAM_START_HEADER } from "../ports/peers.ts";
import type { HttpRequest } from "../ports/transport.ts";

/**
 * The header that names the client of a forwarded request. It is trusted only on connections from other processes: these use a Unix socket,
 * which no other user of the machine can reach, or TLS with the pre-shared key of the cluster. A header of this name that a client sends is
 * not forwarded.
 */
const CLIENT_HEADER = "x-heddle-client";

/**
 * Headers that are not forwarded: hop-by-hop headers of HTTP, which concern a single connection, and headers that each process sets itself.
 */
const NOT_FORWARDED: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "content-length",
  "expect",
  "date",
  CLIENT_HEADER,
  STREAM_START_HEADER,
]);

/** The headers of a request or a response that are forwarded. */
export function endToEndHeaders(headers: Iterable<readonly [string, string | readonly string[]]>): {
  [name: string]: string | readonly string[];
} {
  const kept: { [name: string]: string | readonly string[] } = {};
  for (const [name, value] of headers)
    if (!NOT_FORWARDED.has(name) && !name.startsWith("sec-websocket-")) kept[name] = value;
  return kept;
}

/** The header that names the client of a forwarded request. */
export const clientHeaders = ({ tenant, user }: AuthenticatedClient): { [name: string]: string } => ({
  // Base64, because a handshake is an HTTP request, and Node can send only the characters of ISO 8859-1 in a header.
  [CLIENT_HEADER]: Buffer.from(JSON.stringify({ tenant, user })).toString("base64"),
});

/** The client of a forwarded request. Undefined if the request does not come from a process of this server. */
export function clientOfForwarded(request: Pick<HttpRequest, "header">): AuthenticatedClient | undefined {
  const text = request.header(CLIENT_HEADER);
  if (text === undefined) return undefined;
  const { tenant, user } = JSON.parse(Buffer.from(text, "base64").toString()) as {
    readonly tenant: string;
    readonly user?: JsonObject;
  };
  return { tenant, user: user && storedUserOf(user) };
}
