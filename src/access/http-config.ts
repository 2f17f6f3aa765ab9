import { parseFields, mapMembersOrThrow } from "../model/errors.ts";
import type { JsonObject } from "../model/json.ts";
import { isObject } from "../model/json.ts";
import type { CorsOptions } from "./cors.ts";
import { type RouteGroup, ROUTE_GROUPS } from "./route-groups.ts";

/** Access settings from the section `http` of a configuration file. */
export interface HttpConfig {
  readonly hosts?: readonly string[];
  readonly cors?: CorsOptions;
  readonly mount?: string;
  readonly disabled?: readonly RouteGroup[];
}

/** Reads the access settings of the section `http`. If a key is invalid, calls `refuse` with the key and what is wrong. */
export function parseHttpConfig(http: JsonObject, refuse: (what: string) => never): HttpConfig {
  const at = (key: string, what: string): never => refuse(`http.${key} ${what}`);
  const { disabled, ...others } = parseFields({
    hosts: () => parseHeaderValues(http["allowed_hosts"], (what) => at("allowed_hosts", what)),
    mount: () => parsePathPrefix(http["mount_prefix"], (what) => at("mount_prefix", what)),
    cors: () => {
      const { cors } = http;
      if (!isGiven(cors)) return undefined;
      return isObject(cors)
        ? readCors(cors, (key, what) => at(`cors.${key}`, what))
        : at("cors", "must be an object");
    },
    disabled: () =>
      Object.keys(
        mapMembersOrThrow(
          Object.fromEntries(ROUTE_GROUPS.map((group) => [group, `disable_${group}`])),
          (key) => (flag(http[key], (what) => at(key, what)) ? true : undefined),
        ),
      ) as RouteGroup[],
  });
  return { ...others, ...(disabled.length > 0 && { disabled }) };
}

function readCors(cors: JsonObject, at: (key: string, what: string) => never): CorsOptions {
  const list = (key: string) => () => parseHeaderValues(cors[key], (what) => at(key, what));
  return parseFields({
    origins: list("allow_origins"),
    methods: list("allow_methods"),
    headers: list("allow_headers"),
    exposed: list("expose_headers"),
    originPattern: () => {
      const pattern = cors["allow_origin_regex"] ?? undefined;
      if (pattern === undefined || isPattern(pattern)) return pattern;
      return at("allow_origin_regex", "must be a regular expression");
    },
    maxAge: () => {
      const age = cors["max_age"] ?? undefined;
      if (age === undefined || (Number.isSafeInteger(age) && (age as number) >= 0))
        return age as number | undefined;
      return at("max_age", "must be a whole number of seconds");
    },
    credentials: () =>
      flag(cors["allow_credentials"], (what) => at("allow_credentials", what)) ? true : undefined,
  });
}

/** Reads a path prefix such as `/api`, and removes a slash at its end. Undefined if there is no prefix. */
export function parsePathPrefix(value: unknown, refuse: (what: string) => never): string | undefined {
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

/** Reads a list of strings that a header can carry; undefined if there is none. */
export function parseHeaderValues(
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
