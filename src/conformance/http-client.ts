import { MismatchError } from "./mismatch-error.ts";

/** A server-sent event. `data`: the parsed JSON, or the text if it is not JSON. */
export interface SentEvent {
  readonly event: string;
  readonly data: unknown;
  readonly id?: string;
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  /** The parsed JSON, or the text if it is not JSON. */
  readonly body: unknown;
}

/** Plain HTTP to the server under test, for details that LangGraph's SDK hides. */
export class PlainHttpClient {
  readonly #base: string;
  readonly #key: string | undefined;
  readonly #fetch: typeof fetch;

  constructor(base: string, key: string | undefined, via: typeof fetch) {
    this.#base = base;
    this.#key = key;
    this.#fetch = via;
  }

  /** Sends a request. `body`: a value that is sent as JSON, or a string that is sent as it is. */
  async send(method: string, path: string, body?: unknown): Promise<Answer> {
    const response = await this.#request(method, path, body);
    return { status: response.status, headers: response.headers, body: parseText(await response.text()) };
  }

  /** Reads a stream of server-sent events to its end. @throws MismatchError if the response is not such a stream */
  async stream(method: string, path: string, body?: unknown): Promise<SentEvent[]> {
    return this.streamUntil(method, path, body, () => false);
  }

  /**
   * Reads a stream of server-sent events up to the first event for which `isLast` returns true, then disconnects. For streams that do not
   * end by themselves.
   * @throws MismatchError if the response is not such a stream
   */
  async streamUntil(
    method: string,
    path: string,
    body: unknown,
    isLast: (event: SentEvent) => boolean,
  ): Promise<SentEvent[]> {
    const response = await this.#request(method, path, body);
    const type = response.headers.get("content-type") ?? "";
    if (!response.ok || !type.startsWith("text/event-stream")) {
      const sent = `${response.status} ${type}: ${await response.text()}`;
      throw new MismatchError("no stream", "200 text/event-stream", sent);
    }
    const found: SentEvent[] = [];
    let rest = "";
    for await (const text of textOf(response)) {
      rest += text;
      const end = Math.max(rest.lastIndexOf("\n\n"), rest.lastIndexOf("\n\r\n"));
      if (end < 0) continue;
      found.push(...parseServerSentEvents(rest.slice(0, end)));
      rest = rest.slice(end);
      const last = found.findIndex((event) => isLast(event));
      if (last >= 0) return found.slice(0, last + 1);
    }
    return [...found, ...parseServerSentEvents(rest)];
  }

  #request(method: string, path: string, body: unknown): Promise<Response> {
    const headers = {
      ...(this.#key !== undefined && { "x-api-key": this.#key }),
      ...(body !== undefined && { "content-type": "application/json" }),
    };
    const text = typeof body === "string" ? body : JSON.stringify(body);
    return this.#fetch(`${this.#base}${path}`, {
      method,
      headers,
      ...(body !== undefined && { body: text }),
    });
  }
}

/** The body of a response as text, in chunks. Ending the iteration closes the connection. */
const textOf = ({ body }: Response): AsyncIterable<string> =>
  (body ?? new Blob([]).stream()).pipeThrough(new TextDecoderStream()) as unknown as AsyncIterable<string>;

function parseText(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}

/** Parses the text of a stream of server-sent events. Comments, which are heartbeats, are ignored. */
function parseServerSentEvents(text: string): SentEvent[] {
  const found: SentEvent[] = [];
  for (const block of text.split(/\r?\n\r?\n/)) {
    const fields = new Map<string, string>();
    for (const line of block.split(/\r?\n/)) {
      const [, name, value = ""] = /^(event|data|id): ?(.*)$/s.exec(line) ?? [];
      if (name === undefined) continue;
      const before = fields.get(name);
      fields.set(name, before === undefined ? value : `${before}\n${value}`);
    }
    const event = fields.get("event");
    if (event === undefined) continue;
    const id = fields.get("id");
    found.push({ event, data: parseText(fields.get("data") ?? ""), ...(id !== undefined && { id }) });
  }
  return found;
}
