import { lookup, Resolver } from "node:dns/promises";
import type { IncomingMessage, RequestOptions } from "node:http";
import { isIP } from "node:net";
import type { HttpClient, OutgoingRequest, OutgoingResponse } from "../ports/http-client.ts";

/** Bytes of an answer's body that are read, and thrown away, so that the receiver can end it in good order. */
const MOST = 64 * 1024;

/** Never asked of a name server, RFC 6761. */
const LOCAL = /^(.+\.)?localhost$/i;

/** Node's own client, a connection for each request. */
export const systemHttpClient: HttpClient = { resolve, post };

/**
 * Asks the name servers themselves: the system's own way would hold up one of the few threads that write to the disk for as
 * long as a slow server likes. That way is left for names that only this machine knows.
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

async function post(asked: OutgoingRequest): Promise<OutgoingResponse> {
  const { url, address, headers, body, signal } = asked;
  const secure = url.protocol === "https:";
  const { request } = secure ? await import("node:https") : await import("node:http");
  const name = url.hostname.replace(/^\[|\]$/g, "");
  const options: RequestOptions & { servername?: string } = {
    method: "POST",
    // No name is left to be resolved: the connection goes here.
    host: address,
    port: url.port === "" ? (secure ? 443 : 80) : Number(url.port),
    path: `${url.pathname}${url.search}`,
    headers: { ...headers, host: url.host, "content-length": String(Buffer.byteLength(body)) },
    agent: false,
    signal,
    // Whom the certificate has to name. An address is told to nobody beforehand.
    ...(secure && { servername: isIP(name) === 0 ? name : "" }),
  };
  return new Promise((settle, reject) => {
    const outgoing = request(options, (response) => void read(response).then(settle, reject));
    outgoing.on("error", reject);
    outgoing.end(body);
  });
}

/** Resolves once the answer has ended, or enough of it has come: its status has been told by then. */
function read(response: IncomingMessage): Promise<OutgoingResponse> {
  let bytes = 0;
  response.on("data", (piece: Buffer) => {
    bytes += piece.length;
    if (bytes > MOST) response.destroy();
  });
  response.on("error", () => undefined);
  const answer = { status: response.statusCode ?? 0, retryAfter: response.headers["retry-after"] };
  return new Promise((resolve) => response.on("close", () => resolve(answer)));
}
