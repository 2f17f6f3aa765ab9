import { MAX_HEAD_BYTES, MAX_HEADERS } from "./transport-limits.ts";

/**
 * Collects the headers that determine where a request ends and for which host it is. A proxy in front of the server may interpret an
 * ambiguous combination differently, and take two requests for one (request smuggling). So every ambiguous combination is refused.
 */
export class RequestFraming {
  /** The value of `content-length`; -1 if there is none, as with chunked encoding. */
  length = -1;
  chunked = false;
  #hosts = 0;
  #nameless = false;
  #lengths = 0;
  #codings = 0;
  #odd = false;
  #headers = 0;
  #bytes = 0;

  /** Adds one header. `name`: the name in lower case. */
  note(name: string, value: string): void {
    this.#headers++;
    this.#bytes += name.length + value.length + 4;
    switch (name.length) {
      case 4:
        if (name !== "host") return;
        this.#hosts++;
        if (value === "") this.#nameless = true;
        return;
      case 14:
        if (name !== "content-length") return;
        this.#lengths++;
        if (isLength(value)) this.length = Number(value);
        else this.#odd = true;
        return;
      case 17:
        if (name !== "transfer-encoding") return;
        this.#codings++;
        this.chunked = true;
        if (value.toLowerCase() !== "chunked") this.#odd = true;
        return;
      default:
    }
  }

  /** The reason to refuse the request and to close its connection; undefined if the request is valid. */
  get refusal(): Refusal | undefined {
    if (this.#headers > MAX_HEADERS) return requestTooLarge(`it has more than ${MAX_HEADERS} headers`);
    if (this.#bytes > MAX_HEAD_BYTES)
      return requestTooLarge(`its headers are longer than ${MAX_HEAD_BYTES} bytes`);
    if (this.#hosts !== 1) return malformedRequest("a request needs exactly one Host header");
    if (this.#nameless) return malformedRequest("the Host header is empty");
    if (this.#lengths > 1) return malformedRequest("a request must not have two Content-Length headers");
    if (this.#lengths + this.#codings > 1) return malformedRequest("the length of the body is given twice");
    return this.#odd ? malformedRequest("the length of the body cannot be read") : undefined;
  }

  get hasBody(): boolean {
    return this.chunked || this.length > 0;
  }
}

function isLength(value: string): boolean {
  if (value.length === 0 || value.length > 15) return false;
  for (let i = 0; i < value.length; i++) {
    const code = value.charCodeAt(i);
    if (code < 48 || code > 57) return false;
  }
  return true;
}

/** The response to a request that is refused before it reaches a handler: malformed, too slow, or with too many or too long headers. */
export interface Refusal {
  readonly status: 400 | 408 | 431;
  readonly detail: string;
}

export const malformedRequest = (what: string): Refusal => ({ status: 400, detail: `Bad request: ${what}` });
export const requestTooLarge = (what: string): Refusal => ({
  status: 431,
  detail: `The request is too large: ${what}`,
});

export const REFUSAL_HEADERS = { "content-type": "application/json" };
export const refusalBody = ({ detail }: Refusal): string => JSON.stringify({ detail });
