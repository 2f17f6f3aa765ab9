import type { Summary } from "../stats.ts";

/** A piece of work for the load process: each path once, in order, over `connections`, one request at a time on each. */
export interface Job {
  readonly host: string;
  readonly port: number;
  readonly connections: number;
  readonly method: "GET" | "POST";
  /** Taken in turn, from the start again when `total` is larger. */
  readonly paths: readonly string[];
  readonly total: number;
  /** Sends nothing more after so many, whatever is left of the total. */
  readonly seconds?: number;
  /** Each connection keeps to one path, its own: for threads that must not meet two requests at once. */
  readonly sticky?: boolean;
  readonly headers?: Readonly<Record<string, string>>;
  /** The same for every request; JSON. */
  readonly body?: string;
  /** `text`: a small JSON answer. `events`: a stream, whose events are counted. */
  readonly answer: "text" | "events";
  /** Collects this string member of each JSON answer, e.g. `thread_id`. */
  readonly collect?: string;
}

export interface JobResult {
  readonly requests: number;
  /** Requests that failed: a refused connection, a status other than 2xx, an error in the answer. */
  readonly failures: number;
  /** One failure as an example. */
  readonly failure: string | null;
  /** From the first request to the last answer. */
  readonly seconds: number;
  /** Milliseconds from a request to the end of its answer. */
  readonly latency: Summary;
  /** Milliseconds from a request to the end of its first event. */
  readonly first: Summary | null;
  readonly events: number;
  readonly bytes: number;
  readonly collected: readonly string[];
  /** CPU seconds that the load process itself took. */
  readonly cpu: number;
}
