/** A request of a check, with the status of its response. */
export interface RecordedRequest {
  readonly method: string;
  /** The path and the query. */
  readonly path: string;
  readonly body?: string;
  /** The status of the response. Absent until the response arrives. */
  status?: number;
}

/** A `fetch` that records the latest request, for the report. It can abort the requests of a check. */
export class RecordedFetch {
  latest: RecordedRequest | undefined;
  readonly #stop = new AbortController();
  readonly #base: string;

  constructor(base: string) {
    this.#base = base;
  }

  /** Aborts the requests in progress, and refuses further requests. They fail with the error `reason`. */
  stop(reason: Error): void {
    this.#stop.abort(reason);
  }

  /** Sends a request like the global `fetch`, and records it. */
  readonly fetch = async (input: string | URL | Request, init?: RequestInit): Promise<Response> => {
    const url = input instanceof Request ? input.url : String(input);
    const body = typeof init?.body === "string" ? { body: init.body } : {};
    const path = url.startsWith(this.#base) ? url.slice(this.#base.length) : url;
    const recorded: RecordedRequest = { method: init?.method ?? "GET", path, ...body };
    this.latest = recorded;
    const signals = [this.#stop.signal, ...(init?.signal ? [init.signal] : [])];
    const response = await fetch(input, { ...init, signal: AbortSignal.any(signals) });
    recorded.status = response.status;
    return response;
  };
}
