import { invalidField, type ServiceError } from "../model/errors.ts";
import { isObject, type JsonObject } from "../model/json.ts";
import type { HttpRequest } from "../ports/transport.ts";
import { parseHeaderValues } from "./http-config.ts";

/**
 * Which request headers are passed to runs in `config.configurable`. A pattern is a header name, in which `*` stands for any characters.
 * Upper and lower case are the same.
 */
export interface HeaderPatterns {
  /** The headers to pass on. Default: `x-*` and `user-agent`. */
  readonly includes?: readonly string[];
  /** A header that matches one of these patterns is not passed on, even if it matches `includes`. */
  readonly excludes?: readonly string[];
}

/**
 * Returns the headers of a request that are passed to the runs that it starts, by their lower-case names; undefined if there are none.
 * @throws ServiceError `validation.failed` if they are too large
 */
export type HeaderSelector = (request: Pick<HttpRequest, "headers">) => JsonObject | undefined;

const DEFAULT_INCLUDES = ["x-*", "user-agent"];

/**
 * Headers with credentials. What is passed to a run is stored and shown with the run, so a credential is passed on only if `includes` names
 * it without `*`.
 */
const CREDENTIALS: ReadonlySet<string> = new Set([
  "authorization",
  "proxy-authorization",
  "cookie",
  "x-api-key",
  "x-tenant-id",
  "x-service-key",
]);

/**
 * Members of `configurable` with a meaning of their own. Headers with these names are never passed on. Names that begin with `__` are
 * reserved for LangGraph.
 */
const RESERVED =
  /^(?:__.*|langgraph_.*|thread_id|run_id|graph_id|assistant_id|checkpoint_id|checkpoint_ns|checkpoint_map)$/;

/** The largest total length of the names and values of the headers that are passed on, in characters; for ASCII, these are bytes. */
const MAX_BYTES = 8 * 1024;

/**
 * Reads `http.configurable_headers`; undefined if it is not set or false. If a key is invalid, calls `refuse` with the key and what is
 * wrong.
 */
export function parseHeaderPatterns(
  http: JsonObject,
  refuse: (what: string) => never,
): HeaderPatterns | undefined {
  const given = http["configurable_headers"];
  if (given === undefined || given === null || given === false) return undefined;
  if (!isObject(given)) return refuse("http.configurable_headers must be an object");
  const list = (key: string) =>
    parseHeaderValues(given[key], (what) => refuse(`http.configurable_headers.${key} ${what}`));
  const [includes, excludes] = [list("includes"), list("excludes")];
  if (includes === undefined && excludes === undefined) return undefined;
  return { ...(includes && { includes }), ...(excludes && { excludes }) };
}

/** Creates the function that selects headers by these patterns. Without patterns, the function selects no headers. */
export function createHeaderSelector(patterns: HeaderPatterns | undefined): HeaderSelector {
  if (patterns === undefined) return () => undefined;
  const includes = (patterns.includes ?? DEFAULT_INCLUDES).map((pattern) => pattern.toLowerCase());
  const excludes = (patterns.excludes ?? []).map((pattern) => pattern.toLowerCase());
  const isWanted = (name: string): boolean => {
    if (RESERVED.test(name) || excludes.some((pattern) => matches(pattern, name))) return false;
    if (CREDENTIALS.has(name)) return includes.includes(name);
    return includes.some((pattern) => matches(pattern, name));
  };
  return (request) => {
    const taken = new Map<string, string>();
    let bytes = 0;
    for (const [name, value] of request.headers()) {
      if (!isWanted(name)) continue;
      const earlier = taken.get(name);
      taken.set(name, earlier === undefined ? value : `${earlier}, ${value}`);
      bytes += name.length + value.length;
      if (bytes > MAX_BYTES) throw tooLarge();
    }
    return taken.size === 0 ? undefined : Object.fromEntries(taken);
  };
}

function tooLarge(): ServiceError {
  const message = `that http.configurable_headers names have at most ${MAX_BYTES} bytes together`;
  return invalidField("headers", message);
}

/**
 * Whether a header name matches a pattern. No regular expression is used: the name comes from a client, and backtracking could take very
 * long.
 */
function matches(pattern: string, name: string): boolean {
  const [first = "", ...rest] = pattern.split("*");
  const last = rest.pop();
  if (last === undefined) return name === first;
  if (name.length < first.length + last.length || !name.startsWith(first) || !name.endsWith(last))
    return false;
  let from = first.length;
  for (const part of rest) {
    const at = name.indexOf(part, from);
    if (at < 0) return false;
    from = at + part.length;
  }
  return from <= name.length - last.length;
}
