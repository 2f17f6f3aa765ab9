import type { Summary } from "../stats.ts";

/** A job for the load process: `total` requests over `connections`, one request at a time on each connection. */
export interface Job {
  readonly host: string;
  readonly port: number;
  readonly connections: number;
  readonly method: "GET" | "POST";
  /** Requested in order; after the last path, again from the first one. */
  readonly paths: readonly string[];
  readonly total: number;
  /** Seconds after which no further request is sent, however many remain. */
  readonly seconds?: number;
  /** Connection i only requests path i, so that no thread gets two requests at once. */
  readonly sticky?: boolean;
  /**
   * Connection i of n requests the paths i, i + n, i + 2n and so on, and the connections stay open for the next such job with as many
   * connections. The values of `collect` are in the order of the requests. So a job that makes threads, and a job that uses them in the
   * order in which they were collected, send all requests for one thread over the same connection.
   */
  readonly partitioned?: boolean;
  readonly headers?: Readonly<Record<string, string>>;
  /** The body of every request, as JSON text. */
  readonly body?: string;
  /** `text`: a small JSON response. `events`: a stream, whose events are counted. */
  readonly answer: "text" | "events";
  /** The name of a string member, such as `thread_id`, whose value is collected from each JSON response. */
  readonly collect?: string;
}

export interface JobResult {
  readonly requests: number;
  /** Requests that failed: no connection, a status other than 2xx, or an error in the response. */
  readonly failures: number;
  /** The reason of the first failure; null if no request failed. */
  readonly failure: string | null;
  /** Seconds from the first request to the last response. */
  readonly seconds: number;
  /** Milliseconds from a request to the end of its response. */
  readonly latency: Summary;
  /** Milliseconds from a request to the end of its first event. Null if no events were counted. */
  readonly first: Summary | null;
  readonly events: number;
  readonly bytes: number;
  readonly collected: readonly string[];
  /** CPU seconds of the load process. */
  readonly cpu: number;
}
