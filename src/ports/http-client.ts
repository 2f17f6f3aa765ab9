import type { Headers } from "./transport.ts";

/** A request to another server. The caller has already resolved the server's name to an IP address. */
export interface OutgoingRequest {
  readonly url: URL;
  /** The IP address to connect to. The name in the URL is not resolved again. */
  readonly address: string;
  readonly headers: Headers;
  readonly body: string;
  /** Aborts when the request takes too long. The request is then given up. */
  readonly signal: AbortSignal;
}

export interface OutgoingResponse {
  readonly status: number;
  /** The header `Retry-After` as it was received: seconds, or a date; undefined if there is none. */
  readonly retryAfter: string | undefined;
}

/** Sends requests to other servers. */
export interface HttpClient {
  /**
   * All IP addresses of a name. Rejects when there are none. MUST NOT use Node's `dns.lookup`: it runs in the thread pool that also serves
   * the file system, so a slow name server would delay disk operations.
   */
  resolve(name: string, signal: AbortSignal): Promise<readonly string[]>;
  /**
   * Sends one POST request. MUST connect only to `address`, send the URL's host as `Host`, and check the TLS certificate against
   * that host; MUST NOT follow redirects; MUST read a bounded part of the response body and discard it. Rejects when there is no
   * response.
   */
  post(request: OutgoingRequest): Promise<OutgoingResponse>;
}
