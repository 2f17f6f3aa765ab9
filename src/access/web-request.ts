import { parseUrl } from "../model/url.ts";
import type { HttpRequest } from "../ports/transport.ts";
import { parseHost } from "./hosts.ts";

/** HTTP methods that the `Request` constructor refuses. */
const FORBIDDEN_METHODS: ReadonlySet<string> = new Set(["CONNECT", "TRACE", "TRACK"]);

/** Matches paths that the `URL` parser would change, for example by resolving `..`. */
const CHANGED_BY_URL = /^[^/]|\\|\/(?:\.|%2e){1,2}(?:\/|$)/i;

/**
 * The URL of a request for the project's code. Its path is exactly the path for which access was decided. Undefined if no URL can have that
 * path, or if `Request` does not accept the method.
 */
export function requestUrlOf(request: HttpRequest): string | undefined {
  const { method, path, query } = request;
  if (FORBIDDEN_METHODS.has(method.toUpperCase()) || CHANGED_BY_URL.test(path)) return undefined;
  const named = request.header("host") ?? "";
  // An invalid host is replaced. If it contained a slash, the text after the slash would become part of the path.
  const host = parseHost(named) === undefined ? "localhost" : named;
  const url = `http://${host}${path}${query === "" ? "" : `?${query}`}`;
  return parseUrl(url) && url;
}

/** The headers of a request for which `isKept` returns true. Undefined if `Headers` does not accept one of them. */
export function webHeadersOf(
  request: HttpRequest,
  isKept: (name: string, value: string) => boolean = () => true,
): Headers | undefined {
  const headers = new Headers();
  try {
    for (const [name, value] of request.headers())
      if (isKept(name, value)) headers.append(name, byteString(value));
  } catch {
    return undefined;
  }
  return headers;
}

/**
 * The web request that the project's `authenticate` gets: method, URL and headers. It has no body, because bodies are read only after
 * authentication. `isTrusted`: false if a page of another origin sent the request; the cookies and stored passwords that browsers add on
 * their own are then left out. Undefined if no web request can represent the request.
 */
export function authenticationRequestOf(request: HttpRequest, isTrusted: boolean): Request | undefined {
  const url = requestUrlOf(request);
  const headers = webHeadersOf(request, (name, value) => isTrusted || !isAmbient(name, value));
  if (url === undefined || headers === undefined) return undefined;
  return new Request(url, { method: request.method, headers });
}

const isAmbient = (name: string, value: string): boolean =>
  name === "cookie" || (name === "authorization" && /^\s*(?:basic|digest|negotiate|ntlm)\b/i.test(value));

/** Encodes a header value for `Headers`, which accepts only characters of one byte. A transport may have decoded the value as UTF-8. */
const byteString = (value: string): string =>
  /[\u0100-\uffff]/.test(value) ? Buffer.from(value, "utf8").toString("latin1") : value;
