import type { Headers } from "./transport.ts";

/** A request to another server, at an IP address that is already chosen. */
export interface OutgoingRequest {
  readonly url: URL;
  /** The IP address to connect to. The name in the URL is not resolved again. */
  readonly address: string;
  readonly headers: Headers;
  readonly body: string;
  /** Aborts when the request takes too long. */
  readonly signal: AbortSignal;
}

export interface OutgoingResponse {
  readonly status: number;
  /** The header `Retry-After` as it was sent: seconds, or a date. */
  readonly retryAfter: string | undefined;
}

/** Sends requests to other servers. */
export interface HttpClient {
  /** All IP addresses of a name. Rejects when there are none. A slow name server MUST NOT delay disk operations. */
  resolve(name: string, signal: AbortSignal): Promise<readonly string[]>;
  /**
   * Posts once. MUST connect only to `address`, send the URL's host as `Host`, and verify it over TLS; MUST NOT follow
   * redirects; MUST read a bounded part of the response body and discard it. Rejects when there is no response.
   */
  post(request: OutgoingRequest): Promise<OutgoingResponse>;
}
