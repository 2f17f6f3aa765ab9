import type { Summary } from "../stats.ts";

/** A job for the load process: requests each path once, in order, over `connections`, one request at a time on each. */
export interface Job {
  readonly host: string;
  readonly port: number;
  readonly connections: number;
  readonly method: "GET" | "POST";
  /** Requested in order, and from the start again when `total` is larger. */
  readonly paths: readonly string[];
  readonly total: number;
  /** Seconds after which no further request is sent, however many remain. */
  readonly seconds?: number;
  /** Each connection requests only one path of its own: for threads that must not get two requests at once. */
  readonly sticky?: boolean;
  readonly headers?: Readonly<Record<string, string>>;
  /** The body of every request, as JSON. */
  readonly body?: string;
  /** `text`: a small JSON response. `events`: a stream, whose events are counted. */
  readonly answer: "text" | "events";
  /** Collects this string member of each JSON response, e.g. `thread_id`. */
  readonly collect?: string;
}

export interface JobResult {
  readonly requests: number;
  /** Requests that failed: a refused connection, a status other than 2xx, or an error in the response. */
  readonly failures: number;
  /** One failure as an example. */
  readonly failure: string | null;
  /** From the first request to the last response. */
  readonly seconds: number;
  /** Milliseconds from a request to the end of its response. */
  readonly latency: Summary;
  /** Milliseconds from a request to the end of its first event. */
  readonly first: Summary | null;
  readonly events: number;
  readonly bytes: number;
  readonly collected: readonly string[];
  /** CPU seconds of the load process. */
  readonly cpu: number;
}
