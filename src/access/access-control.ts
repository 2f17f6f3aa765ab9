import { ServiceError } from "../model/errors.ts";
import { DEFAULT_TENANT } from "../model/thread.ts";
import type { Clock } from "../ports/clock.ts";
import type { Random } from "../ports/random.ts";
import type { Headers, HttpRequest } from "../ports/transport.ts";
import { Cors, type CorsOptions } from "./cors.ts";
import { type RouteGroup, routeGroupOf } from "./disabled-routes.ts";
import { AllowedHosts, isLoopback } from "./hosts.ts";
import { ApiKeys } from "./api-keys.ts";
import { isLocalOrigin, isSameOrigin, AllowedOrigins } from "./origins.ts";
import { type SocketToken, SocketTokens } from "./socket-tokens.ts";

export interface AccessOptions {
  /** Entries `key` or `tenant:key`. Without any, everybody who reaches the server may use it, except pages of foreign origins. */
  readonly keys?: readonly string[];
  /** The address that the server listens on. */
  readonly bound?: string;
  /** Allows listening on other addresses than loopback without a key. */
  readonly insecure?: boolean;
  readonly hosts?: readonly string[];
  readonly cors?: CorsOptions;
  /** Allows pages of LangGraph Studio and Agent Chat. */
  readonly studio?: boolean;
  /** The prefix of all paths, such as `/api`. */
  readonly mount?: string;
  readonly disabled?: readonly RouteGroup[];
  /** The secret that signs tokens, 32 bytes or more; default: random, made at start. */
  readonly secret?: string;
}

/** What a request's headers decide: its tenant, the headers of each response, and a refusal if there is one. */
export interface AccessDecision {
  /** Undefined when the request has no valid key. */
  readonly tenant: string | undefined;
  /** Headers to send with every response. */
  readonly headers: Headers;
  /** Set when the request is refused whatever it asks for. */
  readonly refusal?: ServiceError;
}

const NONE: Headers = Object.freeze({});
const ANONYMOUS: AccessDecision = { tenant: DEFAULT_TENANT, headers: NONE };

/** Access control: which clients and pages may use the server, and as which tenant. Decides by the headers alone, before a body is read. */
export class AccessControl {
  readonly #keys: ApiKeys;
  readonly #tokens: SocketTokens;
  readonly #hosts: AllowedHosts;
  readonly #origins: AllowedOrigins;
  readonly #cors: Cors;
  /** Pages of every origin may read responses. */
  readonly #allowsEveryOrigin: boolean;
  readonly #mount: string;
  readonly #disabled: ReadonlySet<RouteGroup> | undefined;

  /** @throws ServiceError `config.invalid` */
  constructor(options: AccessOptions, { clock, random }: { readonly clock: Clock; readonly random: Random }) {
    const { cors = {}, disabled = [], bound = "127.0.0.1" } = options;
    this.#keys = new ApiKeys(options.keys ?? []);
    if (this.#keys.isEmpty && options.insecure !== true && !isLoopback(bound)) {
      throw new ServiceError(
        "config.invalid",
        `host "${bound}" would let other machines drive this server without a key; set HEDDLE_API_KEYS, or add --insecure if that is meant`,
      );
    }
    this.#tokens = new SocketTokens(options.secret ?? Buffer.from(random.bytes(32)), clock);
    this.#hosts = new AllowedHosts(options.hosts ?? [], bound);
    const { origins: listed, originPattern } = cors;
    const pattern = originPattern === undefined ? undefined : new RegExp(`^(?:${originPattern})$`);
    this.#origins = new AllowedOrigins({ listed: listed ?? [], pattern, studio: options.studio === true });
    this.#cors = new Cors(cors);
    const open = listed === undefined && originPattern === undefined;
    this.#allowsEveryOrigin = this.#origins.every || (open && !this.#keys.isEmpty);
    this.#mount = options.mount ?? "";
    this.#disabled = disabled.length === 0 ? undefined : new Set(disabled);
  }

  get hasKeys(): boolean {
    return !this.#keys.isEmpty;
  }

  get hasTenants(): boolean {
    return this.#keys.hasTenants;
  }

  /** The prefix of all paths; empty when there is none. */
  get mount(): string {
    return this.#mount;
  }

  /** The path without the prefix; undefined when nothing is served there. */
  path(full: string): string | undefined {
    let path = full;
    if (this.#mount !== "") {
      if (!full.startsWith(this.#mount)) return undefined;
      path = full.slice(this.#mount.length) || "/";
      if (!path.startsWith("/")) return undefined;
    }
    if (this.#disabled === undefined) return path;
    const group = routeGroupOf(path);
    return group !== undefined && this.#disabled.has(group) ? undefined : path;
  }

  /** Identifies the client of a request. */
  check(request: HttpRequest): AccessDecision {
    const origin = request.header("origin");
    if (this.#keys.isEmpty) {
      const refusal = this.#foreignRefusal(request, origin);
      if (refusal !== undefined) return { tenant: undefined, headers: NONE, refusal };
      return origin === undefined
        ? ANONYMOUS
        : { tenant: DEFAULT_TENANT, headers: this.#corsHeaders(origin, request) };
    }
    const headers = origin === undefined ? NONE : this.#corsHeaders(origin, request);
    return { tenant: this.#tenantOfKey(request), headers };
  }

  /**
   * Identifies the client of a WebSocket handshake. Browsers apply no CORS to WebSockets, so the origin is checked here; they cannot set
   * headers, so a token may replace the key.
   */
  checkSocket(request: HttpRequest): AccessDecision {
    const client = this.check(request);
    if (client.refusal !== undefined || this.#keys.isEmpty) return client;
    const origin = request.header("origin");
    if (origin !== undefined && !this.#mayRead(origin, request)) {
      return { ...client, refusal: forbidden(`Pages of ${quoted(origin)} may not open WebSockets here`) };
    }
    if (client.tenant !== undefined) return client;
    const token = new URLSearchParams(request.query).get("token");
    return token === null ? client : { ...client, tenant: this.#tokens.tenantOf(token) };
  }

  /** The headers that answer a preflight request. */
  preflight(request: HttpRequest, { headers }: AccessDecision): Headers {
    return headers === NONE ? headers : { ...headers, ...this.#cors.preflight(request) };
  }

  token(tenant: string): SocketToken {
    return this.#tokens.issue(tenant);
  }

  #tenantOfKey(request: HttpRequest): string | undefined {
    const key = request.header("x-api-key") ?? bearer(request.header("authorization"));
    return key === undefined ? undefined : this.#keys.tenantOf(key);
  }

  #corsHeaders(origin: string, request: HttpRequest): Headers {
    return this.#mayRead(origin, request) ? this.#cors.answer(origin, this.#allowsEveryOrigin) : NONE;
  }

  #mayRead(origin: string, request: HttpRequest): boolean {
    if (this.#allowsEveryOrigin || this.#origins.isListed(origin)) return true;
    if (isSameOrigin(origin, request.header("host") ?? "")) return true;
    // With keys and a list of origins, only the list counts.
    return this.#keys.isEmpty && isLocalOrigin(origin);
  }

  /** Why a request is refused on a server without keys: its host or its origin is foreign. Undefined when it is not. */
  #foreignRefusal(request: HttpRequest, origin: string | undefined): ServiceError | undefined {
    const host = request.header("host") ?? "";
    if (!this.#hosts.has(host)) {
      return forbidden(`Host ${quoted(host)} is not served without a key; list it in http.allowed_hosts`);
    }
    const page = origin ?? hiddenOrigin(request);
    if (page === undefined || isLocalOrigin(page) || isSameOrigin(page, host)) return undefined;
    if (this.#origins.isListed(page)) return undefined;
    return forbidden(
      `Pages of ${quoted(page)} are not served without a key; list them in http.cors.allow_origins`,
    );
  }
}

/**
 * The origin of a page that sent a request without an `Origin` header, as browsers do for images, scripts and the like. Undefined when no
 * foreign page sent it; following a link does not count.
 */
function hiddenOrigin(request: HttpRequest): string | undefined {
  if (request.header("sec-fetch-site") !== "cross-site") return undefined;
  const followed = request.header("sec-fetch-mode") === "navigate";
  if (followed && request.header("sec-fetch-dest") === "document") return undefined;
  return /^https?:\/\/[^/?#]+/i.exec(request.header("referer") ?? "")?.[0] ?? "null";
}

function bearer(header: string | undefined): string | undefined {
  return header === undefined ? undefined : /^bearer +(\S+) *$/i.exec(header)?.[1];
}

const forbidden = (message: string): ServiceError => new ServiceError("auth.forbidden", message);

const quoted = (text: string): string => JSON.stringify(text.slice(0, 200));
