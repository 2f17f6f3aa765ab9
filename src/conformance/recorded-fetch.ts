/** A request that a check made, with what came back. */
export interface RecordedRequest {
  readonly method: string;
  /** The path with its query. */
  readonly path: string;
  /** The request's body as it was sent. */
  readonly body?: string;
  /** Absent while nothing was answered. */
  status?: number;
}

/** Keeps the latest request of a check, for its report. */
export class RecordedFetch {
  latest: RecordedRequest | undefined;
  readonly #base: string;

  constructor(base: string) {
    this.#base = base;
  }

  /** `fetch`, with the request recorded. */
  readonly fetch = async (input: string | URL | Request, init?: RequestInit): Promise<Response> => {
    const url = input instanceof Request ? input.url : String(input);
    const body = typeof init?.body === "string" ? { body: init.body } : {};
    const path = url.startsWith(this.#base) ? url.slice(this.#base.length) : url;
    const recorded: RecordedRequest = { method: init?.method ?? "GET", path, ...body };
    this.latest = recorded;
    const response = await fetch(input, init);
    recorded.status = response.status;
    return response;
  };
}
