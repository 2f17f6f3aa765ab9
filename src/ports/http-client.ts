import type { Headers } from "./transport.ts";

/** One request to another server, to an address that has been decided on. */
export interface OutgoingRequest {
  readonly url: URL;
  /** The IP address to connect to, whatever the URL's name resolves to by then. */
  readonly address: string;
  readonly headers: Headers;
  readonly body: string;
  /** Aborted when it has taken too long. */
  readonly signal: AbortSignal;
}

export interface OutgoingResponse {
  readonly status: number;
  /** Seconds or a date, as it was sent. */
  readonly retryAfter: string | undefined;
}

/** Asks other servers. */
export interface HttpClient {
  /** All IP addresses of a name. Rejects when there are none. MUST NOT hold up the disk, however slow the answer. */
  resolve(name: string, signal: AbortSignal): Promise<readonly string[]>;
  /**
   * Posts once. MUST connect to `address` alone, tell the URL's host as `Host` and, over TLS, prove it; MUST NOT follow
   * redirects; MUST read a bounded part of the answer's body and keep none of it. Rejects when there is no answer.
   */
  post(request: OutgoingRequest): Promise<OutgoingResponse>;
}
