import type { Headers, HttpRequest } from "../ports/transport.ts";

/** What a configuration says of pages from elsewhere: the keys of `http.cors`. */
export interface CorsOptions {
  readonly origins?: readonly string[];
  /** Of a whole origin. */
  readonly originPattern?: string;
  readonly methods?: readonly string[];
  readonly headers?: readonly string[];
  readonly credentials?: boolean;
  readonly exposed?: readonly string[];
  /** Seconds that a browser may remember a preflight. */
  readonly maxAge?: number;
}

/** Without these a page cannot find its run again, the next page of a list, or the request in our log. */
const EXPOSED = ["content-location", "location", "x-pagination-total", "x-pagination-next", "x-request-id"];
const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];
const VARY = "Origin, Access-Control-Request-Headers, Access-Control-Request-Private-Network";

/** The headers by which a browser learns what a page may do. Whether it may come in at all is decided before. */
export class Cors {
  readonly #options: CorsOptions;
  readonly #exposed: string;
  readonly #methods: string;
  readonly #anyone: Headers;

  constructor(options: CorsOptions) {
    this.#options = options;
    const own = (options.exposed ?? []).map((name) => name.toLowerCase());
    this.#exposed = [...new Set([...own, ...EXPOSED])].join(", ");
    const { methods = METHODS } = options;
    this.#methods = (methods.includes("*") ? METHODS : methods.map((name) => name.toUpperCase())).join(", ");
    this.#anyone = {
      "access-control-allow-origin": "*",
      "access-control-expose-headers": this.#exposed,
    };
  }

  /** For every answer to a page that is allowed. `everyone`: all of them are, so the answer may say so. */
  answer(origin: string, everyone: boolean): Headers {
    if (everyone && this.#options.credentials !== true) return this.#anyone;
    return {
      "access-control-allow-origin": origin,
      "access-control-expose-headers": this.#exposed,
      ...(this.#options.credentials === true ? { "access-control-allow-credentials": "true" } : {}),
      vary: "Origin",
    };
  }

  /** For the answer to a preflight, on top of {@link answer}. */
  preflight(request: HttpRequest): Headers {
    const { headers, maxAge } = this.#options;
    const asked = request.header("access-control-request-headers");
    const allowed = headers === undefined || headers.includes("*") ? asked : headers.join(", ");
    return {
      "access-control-allow-methods": this.#methods,
      ...(allowed === undefined ? {} : { "access-control-allow-headers": printable(allowed) }),
      ...(maxAge === undefined ? {} : { "access-control-max-age": String(maxAge) }),
      // A page on the public net asks before it reaches for the reader's own machine.
      ...(request.header("access-control-request-private-network") === "true"
        ? { "access-control-allow-private-network": "true" }
        : {}),
      vary: VARY,
    };
  }
}

/** What came in by a header goes out by one: nothing in it may end that. */
const printable = (text: string): string => text.replaceAll(/[^\x20-\x7e]/g, "");
