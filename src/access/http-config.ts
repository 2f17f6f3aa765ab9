import type { JsonObject } from "../model/json.ts";
import { isObject } from "../model/json.ts";
import type { CorsOptions } from "./cors.ts";
import { type RouteGroup, ROUTE_GROUPS } from "./disabled-routes.ts";

/** Access settings from the section `http` of a configuration file. */
export interface HttpConfig {
  readonly hosts?: readonly string[];
  readonly cors?: CorsOptions;
  readonly mount?: string;
  readonly disabled?: readonly RouteGroup[];
}

/** Reads the section `http`. `refuse` is called with the invalid key and what is wrong with it. */
export function readHttpConfig(http: JsonObject, refuse: (what: string) => never): HttpConfig {
  const at = (key: string, what: string): never => refuse(`http.${key} ${what}`);
  const hosts = readHeaderValues(http["allowed_hosts"], (what) => at("allowed_hosts", what));
  const mount = readPathPrefix(http["mount_prefix"], (what) => at("mount_prefix", what));
  const disabled = ROUTE_GROUPS.filter((group) =>
    flag(http[`disable_${group}`], (what) => at(`disable_${group}`, what)),
  );
  const { cors } = http;
  if (isGiven(cors) && !isObject(cors)) return at("cors", "must be an object");
  return {
    ...(hosts === undefined ? {} : { hosts }),
    ...(mount === undefined ? {} : { mount }),
    ...(disabled.length === 0 ? {} : { disabled }),
    ...(isObject(cors) ? { cors: readCors(cors, (key, what) => at(`cors.${key}`, what)) } : {}),
  };
}

function readCors(cors: JsonObject, at: (key: string, what: string) => never): CorsOptions {
  const list = (key: string) => readHeaderValues(cors[key], (what) => at(key, what));
  const [origins, methods, headers, exposed] = [
    list("allow_origins"),
    list("allow_methods"),
    list("allow_headers"),
    list("expose_headers"),
  ];
  const pattern = cors["allow_origin_regex"];
  if (isGiven(pattern) && !isPattern(pattern)) at("allow_origin_regex", "must be a regular expression");
  const age = cors["max_age"];
  if (isGiven(age) && !(Number.isSafeInteger(age) && (age as number) >= 0)) {
    at("max_age", "must be a whole number of seconds");
  }
  return {
    ...(origins === undefined ? {} : { origins }),
    ...(methods === undefined ? {} : { methods }),
    ...(headers === undefined ? {} : { headers }),
    ...(exposed === undefined ? {} : { exposed }),
    ...(isPattern(pattern) ? { originPattern: pattern } : {}),
    ...(typeof age === "number" ? { maxAge: age } : {}),
    ...(flag(cors["allow_credentials"], (what) => at("allow_credentials", what))
      ? { credentials: true }
      : {}),
  };
}

/** Reads a path prefix such as `/api`. Removes a slash at its end. */
export function readPathPrefix(value: unknown, refuse: (what: string) => never): string | undefined {
  if (!isGiven(value) || value === "" || value === "/") return undefined;
  if (typeof value !== "string" || !/^(\/[\w.~-]+)+\/?$/.test(value))
    return refuse('must be a path such as "/api"');
  return value.endsWith("/") ? value.slice(0, -1) : value;
}

const isGiven = (value: unknown): boolean => value !== undefined && value !== null;

function flag(value: unknown, refuse: (what: string) => never): boolean {
  if (!isGiven(value)) return false;
  return typeof value === "boolean" ? value : refuse("must be true or false");
}

/** Reads a list of strings that a header can carry. */
export function readHeaderValues(
  value: unknown,
  refuse: (what: string) => never,
): readonly string[] | undefined {
  if (!isGiven(value)) return undefined;
  const isText = (item: unknown): item is string => typeof item === "string" && /^[\x21-\x7e]+$/.test(item);
  return Array.isArray(value) && value.every(isText)
    ? value
    : refuse("must be an array of strings, without blanks");
}

function isPattern(value: unknown): value is string {
  if (typeof value !== "string") return false;
  try {
    return new RegExp(`^(?:${value})$`) instanceof RegExp;
  } catch {
    return false;
  }
}
