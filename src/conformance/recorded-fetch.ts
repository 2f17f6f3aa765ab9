/** A request that a check made, with its answer. */
export interface RecordedRequest {
  readonly method: string;
  /** The path with its query. */
  readonly path: string;
  readonly body?: string;
  /** The status of the answer; absent until there is an answer. */
  status?: number;
}

/** Records the latest request of a check for the report, and can abort the requests of the check. */
export class RecordedFetch {
  latest: RecordedRequest | undefined;
  readonly #stop = new AbortController();
  readonly #base: string;

  constructor(base: string) {
    this.#base = base;
  }

  /** Aborts the requests in progress, and refuses further ones. `reason`: the error that they fail with. */
  stop(reason: Error): void {
    this.#stop.abort(reason);
  }

  /** Sends a request as the global `fetch` does, and records it. */
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
