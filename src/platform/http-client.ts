import { lookup, Resolver } from "node:dns/promises";
import type { IncomingMessage, RequestOptions } from "node:http";
import { isIP } from "node:net";
import type { HttpClient, OutgoingRequest, OutgoingResponse } from "../ports/http-client.ts";

/**
 * Bytes of a response body that are read before the connection is closed. Nothing uses the body; reading it lets the server end the
 * response normally.
 */
const MAX_DISCARDED_BYTES = 64 * 1024;

/** Names of this machine (RFC 6761), which are resolved by the system and not by asking name servers. */
const LOCAL = /^(.+\.)?localhost$/i;

/** Node's HTTP client, with a new connection for each request. */
export const systemHttpClient: HttpClient = { resolve, post };

/**
 * Resolves a name by asking the name servers directly. The system's resolver (`lookup`) is asked only if they do not know the name: while
 * it waits for a slow name server, it occupies one of the few threads that write to the disk.
 */
async function resolve(name: string, signal: AbortSignal): Promise<readonly string[]> {
  if (LOCAL.test(name)) return known(name);
  const resolver = new Resolver({ timeout: 3_000, tries: 2 });
  const cancel = () => resolver.cancel();
  signal.addEventListener("abort", cancel, { once: true });
  try {
    const found = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
    signal.throwIfAborted();
    const addresses = found.flatMap((one) => (one.status === "fulfilled" ? one.value : []));
    if (addresses.length > 0) return addresses;
    // A name server that timed out is slow, so `lookup` is not called.
    const slow = found.find((one) => one.status === "rejected" && codeOf(one.reason) === "ETIMEOUT");
    if (slow?.status === "rejected") throw slow.reason;
    return await known(name);
  } finally {
    signal.removeEventListener("abort", cancel);
  }
}

const known = async (name: string): Promise<readonly string[]> =>
  (await lookup(name, { all: true })).map(({ address }) => address);

const codeOf = (error: unknown): unknown => (error as { code?: unknown } | null)?.code;

async function post(webhookRequest: OutgoingRequest): Promise<OutgoingResponse> {
  const { url, address, headers, body, signal } = webhookRequest;
  const secure = url.protocol === "https:";
  const { request } = secure ? await import("node:https") : await import("node:http");
  const name = url.hostname.replace(/^\[|\]$/g, "");
  const options: RequestOptions & { servername?: string } = {
    method: "POST",
    // Connects to the address that was checked. Resolving the name again could give another address.
    host: address,
    port: url.port === "" ? (secure ? 443 : 80) : Number(url.port),
    path: `${url.pathname}${url.search}`,
    headers: { ...headers, host: url.host, "content-length": String(Buffer.byteLength(body)) },
    agent: false,
    signal,
    // The name for SNI and for the check of the certificate. SNI does not allow IP addresses; for "", Node checks the certificate against
    // `host`.
    ...(secure && { servername: isIP(name) === 0 ? name : "" }),
  };
  return new Promise((settle, reject) => {
    const outgoing = request(options, (response) => void read(response).then(settle, reject));
    outgoing.on("error", reject);
    outgoing.end(body);
  });
}

/** Resolves when the response has ended or failed, or when more than {@link MAX_DISCARDED_BYTES} of its body were read. */
function read(response: IncomingMessage): Promise<OutgoingResponse> {
  let bytes = 0;
  response.on("data", (piece: Buffer) => {
    bytes += piece.length;
    if (bytes > MAX_DISCARDED_BYTES) response.destroy();
  });
  response.on("error", () => undefined);
  const answer = { status: response.statusCode ?? 0, retryAfter: response.headers["retry-after"] };
  return new Promise((resolve) => response.on("close", () => resolve(answer)));
}
