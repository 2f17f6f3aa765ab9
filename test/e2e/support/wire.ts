import { expect, onTestFinished } from "vitest";
import { pairedId } from "../../../src/model/ids.ts";

export const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
export const HEX32 = /^[0-9a-f]{32}$/;
/** ISO 8601 with an offset. */
export const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+\+00:00$/;

export const aUuid: unknown = expect.stringMatching(UUID);
export const aHex32: unknown = expect.stringMatching(HEX32);
export const aTime: unknown = expect.stringMatching(TIME);
/** A well-formed id that belongs to nothing. */
export const NOBODY = "00000000-0000-4000-8000-000000000000";

const json = { "content-type": "application/json" };

export const get = async (url: string, headers: Record<string, string> = {}) =>
  whenEnded(await openGet(url, headers));

/** Posts JSON, or a text unchanged. */
export const post = async (url: string, body: unknown = {}) => whenEnded(await openPost(url, body));

/** Like {@link get}, but resolves with the headers: also when the run that the request waits for has not ended. */
export const openGet = (url: string, headers: Record<string, string> = {}) => fetch(url, { headers });

/** Like {@link post}, but resolves with the headers: also when the run that the request waits for has not ended. */
export function openPost(url: string, body: unknown = {}): Promise<Response> {
  return fetch(url, {
    method: "POST",
    headers: json,
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
}

/**
 * The response to a request that waits for a run, when the run has ended. Its headers come earlier if the run takes longer than 250 ms,
 * as on a busy machine: a test that went on from there would find the thread busy. Other responses are returned as they are.
 */
export async function whenEnded(response: Response): Promise<Response> {
  if (!/\/runs\/(?:wait|[^/]+\/join)$/.test(new URL(response.url).pathname)) return response;
  const { status, headers } = response;
  return new Response(await response.text(), { status, headers });
}

export async function postJson<T>(url: string, body?: unknown): Promise<T> {
  const response = await post(url, body);
  const text = await response.text();
  if (!response.ok) throw new Error(`${response.status} ${text}`);
  return JSON.parse(text) as T;
}

export async function newThread(url: string): Promise<string> {
  return (await postJson<{ thread_id: string }>(`${url}/threads`)).thread_id;
}

/** Creates two threads that are in one shard. */
export async function twoThreads(url: string): Promise<readonly [string, string]> {
  const one = await newThread(url);
  const two = pairedId(one);
  await postJson(`${url}/threads`, { thread_id: two });
  return [one, two];
}

/** One server-sent event with its exact bytes. */
export interface Sent {
  readonly id: string;
  readonly event: string;
  readonly data: unknown;
  readonly bytes: string;
}

/** Parses the events of a stream, without its heartbeats. Fails if the framing is wrong. */
export function events(text: string): Sent[] {
  const blocks = text.replaceAll(/^: heartbeat\n/gm, "").split("\n\n");
  expect(blocks.pop()).toBe("");
  return blocks.map((block) => {
    const [, event, data, id] =
      /^event: ([^\r\n]+)\ndata: ([^\r\n]+)\nid: (\d+(?:\.\d+)?)$/.exec(block) ?? [];
    if (event === undefined || data === undefined || id === undefined) {
      throw new Error(`not an event: ${JSON.stringify(block)}`);
    }
    return { id, event, data: JSON.parse(data) as unknown, bytes: `${block}\n\n` };
  });
}

export const bytesOf = (sent: readonly Sent[]): string => sent.map(({ bytes }) => bytes).join("");

/** Reads a stream piece by piece. */
export class Reading {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #decoder = new TextDecoder();
  #text = "";

  constructor(response: Response) {
    if (response.body === null) throw new Error("there is nothing to read");
    this.#reader = response.body.getReader() as ReadableStreamDefaultReader<Uint8Array>;
  }

  /** Resolves with the events so far when one of them matches. */
  async until(isIt: (sent: Sent) => boolean): Promise<Sent[]> {
    for (;;) {
      const end = this.#text.lastIndexOf("\n\n");
      const whole = end < 0 ? [] : events(this.#text.slice(0, end + 2));
      if (whole.some(isIt)) return whole;
      if (!(await this.#more())) throw new Error("the stream ended before");
    }
  }

  /** Resolves with all events when the stream has ended. */
  async all(): Promise<Sent[]> {
    while (await this.#more());
    return events(this.#text);
  }

  /** Closes the stream without reading on. */
  leave(): Promise<void> {
    return this.#reader.cancel();
  }

  async #more(): Promise<boolean> {
    const { done, value } = await this.#reader.read();
    if (value !== undefined) this.#text += this.#decoder.decode(value, { stream: true });
    return !done;
  }
}

/** A stream of a response as text, read as it comes. It is left when the test ends. */
export class Following {
  text = "";
  readonly #reader: ReadableStreamDefaultReader<string>;

  constructor({ body }: Response) {
    if (body === null) throw new Error("there is nothing to read");
    this.#reader = body.pipeThrough(new TextDecoderStream()).getReader();
    onTestFinished(() => this.#reader.cancel());
  }

  async until(part: string): Promise<void> {
    while (!this.text.includes(part)) this.text += (await this.#reader.read()).value ?? "";
  }

  /** Resolves when the stream has ended. */
  async end(): Promise<void> {
    for (let next = await this.#reader.read(); !next.done; next = await this.#reader.read())
      this.text += next.value;
  }
}
