import type { Headers, HttpRequest } from "../ports/transport.ts";

/** CORS settings, from the section `http.cors` of a configuration file. */
export interface CorsOptions {
  readonly origins?: readonly string[];
  /** A regular expression that must match the whole origin. */
  readonly originPattern?: string;
  readonly methods?: readonly string[];
  readonly headers?: readonly string[];
  readonly credentials?: boolean;
  readonly exposed?: readonly string[];
  /** Seconds for which a browser may cache a preflight response. */
  readonly maxAge?: number;
}

/** Response headers that pages may read: the URL of a run, the pagination of a list, and the id of the request in the log. */
const EXPOSED = ["content-location", "location", "x-pagination-total", "x-pagination-next", "x-request-id"];
const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];
const VARY = "Origin, Access-Control-Request-Headers, Access-Control-Request-Private-Network";

/** Creates the CORS response headers. The caller has already decided that the page is allowed. */
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

  /** The headers of a response to an allowed page. `everyone`: pages of every origin are allowed, so the allowed origin may be `*`. */
  answer(origin: string, everyone: boolean): Headers {
    if (everyone && this.#options.credentials !== true) return this.#anyone;
    return {
      "access-control-allow-origin": origin,
      "access-control-expose-headers": this.#exposed,
      ...(this.#options.credentials === true ? { "access-control-allow-credentials": "true" } : {}),
      vary: "Origin",
    };
  }

  /** The headers of a preflight response, in addition to {@link answer}. */
  preflight(request: HttpRequest): Headers {
    const { headers, maxAge } = this.#options;
    const asked = request.header("access-control-request-headers");
    const allowed = headers === undefined || headers.includes("*") ? asked : headers.join(", ");
    return {
      "access-control-allow-methods": this.#methods,
      ...(allowed === undefined ? {} : { "access-control-allow-headers": printable(allowed) }),
      ...(maxAge === undefined ? {} : { "access-control-max-age": String(maxAge) }),
      // Private Network Access: with this request header, the browser asks whether a public page may send requests to a private address.
      ...(request.header("access-control-request-private-network") === "true"
        ? { "access-control-allow-private-network": "true" }
        : {}),
      vary: VARY,
    };
  }
}

/**
 * Removes control characters and characters that are not ASCII. The text comes from a request header, and could otherwise break the
 * response header.
 */
const printable = (text: string): string => text.replaceAll(/[^\x20-\x7e]/g, "");
