import { parseFields, ServiceError } from "../model/errors.ts";
import { isObject, type JsonObject } from "../model/json.ts";
import type { WebhookPolicy } from "../model/webhook-policy.ts";

/** The section `webhooks` of a configuration file. Unknown keys are ignored, as in the rest of the file. */
export interface WebhookConfig {
  /** Allows webhooks to loopback and private addresses. Default: false. Addresses of cloud metadata services are always refused. */
  readonly allow_internal?: boolean;
  /** The secret with which each delivery attempt is signed. The variable `HEDDLE_WEBHOOK_SECRET` takes precedence. */
  readonly secret?: string;
  /**
   * Headers of each delivery attempt. `${{ env.NAME }}` is replaced by the value of an environment variable, whose name must begin with
   * `env_prefix`.
   */
  readonly headers?: { readonly [name: string]: string };
  /** The prefix that the names of variables in `headers` must have. Default: `LG_WEBHOOK_`. */
  readonly env_prefix?: string;
  /** The number of seconds that one delivery attempt may take. Default: 10. */
  readonly timeout?: number;
  /** The number of attempts before a delivery becomes a dead letter. Default: 8, within about three hours. */
  readonly attempts?: number;
  readonly url?: {
    readonly require_https?: boolean;
    /**
     * The domains to which webhooks may be sent: `hooks.example.com`, or `*.example.com` for every name below `example.com`. Default: any
     * public host.
     */
    readonly allowed_domains?: readonly string[];
    readonly allowed_ports?: readonly number[];
    /** Whether webhooks that are a path on this server are refused. Default: false. */
    readonly disable_loopback?: boolean;
    /** The maximum length of a webhook's URL, in characters. Default: 4096. */
    readonly max_url_length?: number;
  };
}

type Refuse = (what: string) => never;
type Env = { readonly [name: string]: string | undefined };

const PREFIX = "LG_WEBHOOK_";

/**
 * Replaces each `${{ env.NAME }}` in the headers by the value of the environment variable.
 * @throws ServiceError `config.invalid` if a name lacks the prefix, or a variable is not set
 */
export function fillTemplates(config: JsonObject, env: Env): JsonObject {
  const { env_prefix: prefix = PREFIX, headers } = config;
  if (!isText(prefix)) refuse("webhooks.env_prefix must be a text that is not empty");
  if (headers === undefined || !isObject(headers)) return config;
  const filled = Object.entries(headers).map(([name, value]) => {
    if (typeof value !== "string") return [name, value] as const;
    const text = value.replaceAll(/\$\{\{\s*env\.(\w+)\s*\}\}/g, (_, variable: string) => {
      if (!variable.startsWith(prefix)) {
        return refuse(`webhooks.headers.${name} names ${variable}, which does not begin with ${prefix}`);
      }
      return env[variable] ?? refuse(`webhooks.headers.${name} names ${variable}, which is not set`);
    });
    return [name, text] as const;
  });
  return { ...config, headers: Object.fromEntries(filled) };
}

/** Checks the section `webhooks`, and fills in defaults. @throws ServiceError `config.invalid` */
export function parseWebhookPolicy(config: JsonObject): WebhookPolicy {
  const url = config["url"] ?? {};
  if (!isObject(url)) return refuse("webhooks.url must be an object");
  return parseFields({
    allowInternal: () => flag(config["allow_internal"], "webhooks.allow_internal"),
    secret: () => {
      const secret = config["secret"] ?? null;
      if (secret === null || isText(secret)) return secret;
      return refuse("webhooks.secret must be a text that is not empty");
    },
    headers: () => readHeaders(config["headers"]),
    timeout: () => Math.round((number(config["timeout"], "webhooks.timeout", 0.001, 300) ?? 10) * 1000),
    attempts: () => whole(config["attempts"], "webhooks.attempts", 1, 100) ?? 8,
    requireHttps: () => flag(url["require_https"], "webhooks.url.require_https"),
    domains: () => readDomains(url["allowed_domains"]),
    ports: () => readPorts(url["allowed_ports"]),
    ownPaths: () => !flag(url["disable_loopback"], "webhooks.url.disable_loopback"),
    maxUrlLength: () => whole(url["max_url_length"], "webhooks.url.max_url_length", 1, 65_536) ?? 4096,
  });
}

const refuse: Refuse = (what) => {
  throw new ServiceError("config.invalid", what);
};

const isText = (value: unknown): value is string => typeof value === "string" && value !== "";

function flag(value: unknown, at: string): boolean {
  if (value === undefined || value === null) return false;
  return typeof value === "boolean" ? value : refuse(`${at} must be true or false`);
}

function number(value: unknown, at: string, least: number, most: number): number | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value === "number" && value >= least && value <= most) return value;
  return refuse(`${at} must be a number from ${least} to ${most}`);
}

function whole(value: unknown, at: string, least: number, most: number): number | undefined {
  if (value === undefined || Number.isInteger(value)) return number(value, at, least, most);
  return refuse(`${at} must be a whole number from ${least} to ${most}`);
}

/** Matches the names of headers that frame or identify the request. A configured value would break the request or impersonate Heddle. */
const OURS = /^(host|content-length|content-type|transfer-encoding|connection|expect|upgrade|x-webhook-.*)$/;
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/** Matches the values that a header can carry: tabs, and the characters of Latin-1 that are not ASCII control characters. */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

function readHeaders(value: unknown): WebhookPolicy["headers"] {
  if (value === undefined || value === null) return {};
  if (!isObject(value)) return refuse("webhooks.headers must be an object of texts");
  const headers = Object.entries(value).map(([name, text]) => {
    if (!TOKEN.test(name)) refuse(`webhooks.headers.${name} is no name of a header`);
    if (OURS.test(name.toLowerCase())) refuse(`webhooks.headers.${name} cannot be set`);
    // The message does not contain the value, because it may be a secret.
    if (typeof text !== "string" || !VALUE.test(text))
      refuse(`webhooks.headers.${name} must be one line of text`);
    return [name.toLowerCase(), text as string] as const;
  });
  return Object.fromEntries(headers);
}

function readDomains(value: unknown): WebhookPolicy["domains"] {
  if (value === undefined || value === null) return null;
  const wrong = 'webhooks.url.allowed_domains must be a list such as ["hooks.example.com", "*.example.com"]';
  if (!Array.isArray(value)) return refuse(wrong);
  // An empty list allows any domain, like an empty list of ports.
  if (value.length === 0) return null;
  return value.map((name: unknown) => {
    if (typeof name !== "string" || !/^(\*\.)?[^\s*/:@]+$/.test(name)) return refuse(wrong);
    return name.toLowerCase().replace(/\.$/, "");
  });
}

function readPorts(value: unknown): WebhookPolicy["ports"] {
  if (value === undefined || value === null) return null;
  if (!Array.isArray(value)) return refuse("webhooks.url.allowed_ports must be a list of ports");
  if (value.length === 0) return null;
  return value.map(
    (port: unknown) =>
      whole(port, "each of webhooks.url.allowed_ports", 1, 65_535) ??
      refuse("webhooks.url.allowed_ports must be a list of ports"),
  );
}
