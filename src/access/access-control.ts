import type { AuthUser } from "../model/auth-user.ts";
import { ServiceError } from "../model/errors.ts";
import { DEFAULT_TENANT } from "../model/thread.ts";
import type { Clock } from "../ports/clock.ts";
import type { Random } from "../ports/random.ts";
import type { Headers, HttpRequest } from "../ports/transport.ts";
import { Cors, type CorsOptions } from "./cors.ts";
import { type RouteGroup, routeGroupOf } from "./route-groups.ts";
import { AllowedHosts, isLoopback } from "./hosts.ts";
import { ApiKeys } from "./api-keys.ts";
import type { Authenticator } from "./custom-auth.ts";
import { authenticationRequestOf } from "./web-request.ts";
import { isLocalOrigin, isSameOrigin, AllowedOrigins } from "./origins.ts";
import { type SocketToken, SocketTokens, type TokenHolder } from "./socket-tokens.ts";

export interface AccessOptions {
  /**
   * API keys, each `key` (of the default tenant) or `tenant:key`. Without keys and without `auth`, every client that can reach the server
   * may use it. Only requests of pages from other origins and requests that name an unknown host are refused.
   */
  readonly keys?: readonly string[];
  /**
   * Authenticates requests without an API key. With an authenticator, API keys are for operators: the rules for users do not apply to
   * requests with a key.
   */
  readonly auth?: Authenticator;
  /**
   * Whether requests of LangGraph Studio are accepted as those of a special user, if `studio` is set and only this machine can reach the
   * server.
   */
  readonly studioUser?: boolean;
  /** The address on which the server listens. Default: 127.0.0.1. */
  readonly bound?: string;
  /** Allows listening on addresses other than loopback without `keys` and `auth`. */
  readonly insecure?: boolean;
  readonly hosts?: readonly string[];
  readonly cors?: CorsOptions;
  /** Lets the web pages of LangGraph Studio and Agent Chat call the server. */
  readonly studio?: boolean;
  /** The prefix of all paths of the server, such as `/api`. Default: no prefix. */
  readonly mount?: string;
  readonly disabled?: readonly RouteGroup[];
  /** The secret with which WebSocket tokens are signed, at least 32 bytes. Default: a random secret, made at the start. */
  readonly secret?: string;
}

/** What access control decides about a request from its headers. */
export interface AccessDecision {
  /**
   * The tenant of the request's API key or token; the default tenant if the server needs no credentials. Undefined if the server needs
   * credentials and finds neither a valid key nor a valid token, or if a server without credentials refuses the request. It may be set
   * although `refusal` is: a WebSocket from a page that is not allowed can have a valid key.
   */
  readonly tenant: string | undefined;
  /** The user for whom the token of a WebSocket handshake was issued. Absent for all other requests. */
  readonly user?: AuthUser;
  readonly headers: Headers;
  /** The error with which the request is refused, whatever its route. Absent if the request may go on. */
  readonly refusal?: ServiceError;
}

/** The user of LangGraph Studio's requests, the same as on LangGraph's own server. */
const STUDIO_USER: AuthUser = Object.freeze({
  kind: "StudioUser",
  identity: "langgraph-studio-user",
  display_name: "langgraph-studio-user",
  permissions: Object.freeze([]),
  is_authenticated: true,
});

const NO_HEADERS: Headers = Object.freeze({});
const ANONYMOUS: AccessDecision = { tenant: DEFAULT_TENANT, headers: NO_HEADERS };

/**
 * Access control: which clients and web pages may use the server, and as which tenant. It decides before a body is
 * read.
 */
export class AccessControl {
  readonly #keys: ApiKeys;
  readonly #auth: Authenticator | undefined;
  readonly #hasStudioUser: boolean;
  readonly #tokens: SocketTokens;
  readonly #hosts: AllowedHosts;
  readonly #origins: AllowedOrigins;
  readonly #cors: Cors;
  /** Whether pages of every origin may read responses. */
  readonly #allowsEveryOrigin: boolean;
  readonly #mount: string;
  readonly #disabled: ReadonlySet<RouteGroup> | undefined;

  /**
   * Checks the options.
   * @throws ServiceError `config.invalid` for an invalid option, or if other machines could use the server without credentials and
   * `insecure` is not set
   */
  constructor(options: AccessOptions, deps: { readonly clock: Clock; readonly random: Random }) {
    const { cors = {}, disabled = [], bound = "127.0.0.1", auth } = options;
    this.#keys = new ApiKeys(options.keys ?? []);
    this.#auth = auth;
    if (this.#isOpen && options.insecure !== true && !isLoopback(bound)) {
      throw new ServiceError(
        "config.invalid",
        `host "${bound}" would let other machines drive this server without a key; set HEDDLE_API_KEYS, or add --insecure if that is meant (in a program: the options keys and insecure of createApp)`,
      );
    }
    // Studio is recognised only by a header, which any client can send. So its user exists only if no other machine can reach the server.
    this.#hasStudioUser = options.studioUser === true && options.studio === true && isLoopback(bound);
    this.#tokens = new SocketTokens(options.secret ?? Buffer.from(deps.random.bytes(32)), deps);
    this.#hosts = new AllowedHosts(options.hosts ?? [], bound);
    const { origins: listed, originPattern } = cors;
    const pattern = originPattern === undefined ? undefined : new RegExp(`^(?:${originPattern})$`);
    this.#origins = new AllowedOrigins({ listed: listed ?? [], pattern, studio: options.studio === true });
    this.#cors = new Cors(cors);
    const open = listed === undefined && originPattern === undefined;
    this.#allowsEveryOrigin = this.#origins.allowsAll || (open && !this.#isOpen);
    this.#mount = options.mount ?? "";
    this.#disabled = disabled.length === 0 ? undefined : new Set(disabled);
  }

  /** Whether requests need an API key or other credentials. */
  get needsCredentials(): boolean {
    return !this.#isOpen;
  }

  /** Whether an authenticator is configured, which finds the user of a request without an API key. */
  get hasUsers(): boolean {
    return this.#auth !== undefined;
  }

  get #isOpen(): boolean {
    return this.#keys.isEmpty && this.#auth === undefined;
  }

  get hasTenants(): boolean {
    return this.#keys.hasTenants;
  }

  /** The prefix of all paths of the server; empty if there is none. */
  get mount(): string {
    return this.#mount;
  }

  /** Removes the prefix from a path. Returns undefined if the path does not have the prefix, or belongs to a disabled group of routes. */
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

  /**
   * Decides about a request by its API key. A server without credentials accepts each request whose host and origin are allowed. A request
   * without a key may come from a user: see {@link authenticate}.
   */
  check(request: HttpRequest): AccessDecision {
    const origin = request.header("origin");
    if (this.#isOpen) {
      const refusal = this.#foreignRefusal(request, origin);
      if (refusal !== undefined) return { tenant: undefined, headers: NO_HEADERS, refusal };
      return origin === undefined
        ? ANONYMOUS
        : { tenant: DEFAULT_TENANT, headers: this.#corsHeaders(origin, request) };
    }
    const headers = origin === undefined ? NO_HEADERS : this.#corsHeaders(origin, request);
    return { tenant: this.#tenantOfKey(request), headers };
  }

  /**
   * Finds the user of a request without an API key. Reads the request before the first `await`, because the transport may make it invalid
   * afterwards.
   * @throws ServiceError as {@link Authenticator.authenticate} does
   */
  async authenticate(request: HttpRequest): Promise<AuthUser> {
    const page = request.header("origin") ?? refererOrigin(request);
    if (this.#hasStudioUser && request.header("x-auth-scheme") === "langsmith") {
      if (this.#foreignRefusal(request, request.header("origin")) === undefined) return STUDIO_USER;
    }
    // A browser adds the user's cookies to requests from any page. They are passed to the authenticator only if the page is trusted.
    const isTrustedPage =
      page === undefined ||
      (!this.#origins.allowsAll && this.#origins.isListed(page)) ||
      isSameOrigin(page, request.header("host") ?? "");
    const asked = authenticationRequestOf(request, isTrustedPage);
    if (this.#auth === undefined || asked === undefined)
      throw new ServiceError("auth.required", "The request says nothing of its user");
    return this.#auth.authenticate(asked);
  }

  /**
   * Identifies the client of a WebSocket handshake. The origin is checked here, because browsers do not apply CORS to WebSockets. A token
   * may replace the API key, because browsers cannot set headers on a handshake.
   */
  checkSocket(request: HttpRequest): AccessDecision {
    const client = this.check(request);
    if (client.refusal !== undefined || this.#isOpen) return client;
    const origin = request.header("origin");
    if (origin !== undefined && !this.#mayRead(origin, request)) {
      return { ...client, refusal: forbidden(`Pages of ${quoted(origin)} may not open WebSockets here`) };
    }
    if (client.tenant !== undefined) return client;
    const token = new URLSearchParams(request.query).get("token");
    return token === null ? client : { ...client, ...this.#tokens.holderOf(token) };
  }

  preflight(request: HttpRequest, { headers }: AccessDecision): Headers {
    return headers === NO_HEADERS ? headers : { ...headers, ...this.#cors.preflight(request) };
  }

  /** Issues a token with which a browser can open a WebSocket. @throws ServiceError `server.busy` if too many tokens of users are valid */
  token(holder: TokenHolder): SocketToken {
    return this.#tokens.issue(holder);
  }

  #tenantOfKey(request: HttpRequest): string | undefined {
    if (this.#keys.isEmpty) return undefined;
    const key = request.header("x-api-key") ?? bearer(request.header("authorization"));
    return key === undefined ? undefined : this.#keys.tenantOf(key);
  }

  #corsHeaders(origin: string, request: HttpRequest): Headers {
    return this.#mayRead(origin, request) ? this.#cors.answer(origin, this.#allowsEveryOrigin) : NO_HEADERS;
  }

  #mayRead(origin: string, request: HttpRequest): boolean {
    if (this.#allowsEveryOrigin || this.#origins.isListed(origin)) return true;
    if (isSameOrigin(origin, request.header("host") ?? "")) return true;
    // Pages of other servers on this machine may read responses only if this server needs no credentials.
    return this.#isOpen && isLocalOrigin(origin);
  }

  /**
   * For a server that needs no credentials: the error with which a request is refused because its host or origin is not allowed. Undefined
   * if the request is allowed.
   */
  #foreignRefusal(request: HttpRequest, origin: string | undefined): ServiceError | undefined {
    const host = request.header("host") ?? "";
    if (!this.#hosts.has(host)) {
      return forbidden(`Host ${quoted(host)} is not served without a key; list it in http.allowed_hosts`);
    }
    const page = origin ?? refererOrigin(request);
    if (page === undefined || isLocalOrigin(page) || isSameOrigin(page, host)) return undefined;
    if (this.#origins.isListed(page)) return undefined;
    return forbidden(
      `Pages of ${quoted(page)} are not served without a key; list them in http.cors.allow_origins`,
    );
  }
}

/**
 * Returns the origin of a page of another site that sent a request without an `Origin` header, as browsers do for images and scripts.
 * Returns the text `null` if the page's origin is not known, and undefined if no such page sent the request. A link that the user follows
 * does not count.
 */
function refererOrigin(request: HttpRequest): string | undefined {
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
