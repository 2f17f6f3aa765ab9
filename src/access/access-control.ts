import { ServiceError } from "../model/errors.ts";
import { DEFAULT_TENANT } from "../model/thread.ts";
import type { Clock } from "../ports/clock.ts";
import type { Random } from "../ports/random.ts";
import type { Headers, HttpRequest } from "../ports/transport.ts";
import { Cors, type CorsOptions } from "./cors.ts";
import { type Group, groupOf } from "./route-groups.ts";
import { Hosts, isLoopback } from "./hosts.ts";
import { Keys } from "./api-keys.ts";
import { isFromHere, isSame, Origins } from "./origins.ts";
import { type Token, Tokens } from "./socket-tokens.ts";

export interface DoorOptions {
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
  readonly disabled?: readonly Group[];
  /** The secret that signs tokens, 32 bytes or more; default: random, made at start. */
  readonly secret?: string;
}

/** The client, as identified by a request's headers. */
export interface Guest {
  /** Undefined when the request has no valid key. */
  readonly tenant: string | undefined;
  /** Headers to send with every response. */
  readonly headers: Headers;
  /** Set when the request is refused whatever it asks for. */
  readonly refusal?: ServiceError;
}

const NONE: Headers = Object.freeze({});
const HOME: Guest = { tenant: DEFAULT_TENANT, headers: NONE };

/** Access control: which clients and pages may use the server, and as which tenant. Decides by the headers alone, before a body is read. */
export class Door {
  readonly #keys: Keys;
  readonly #tokens: Tokens;
  readonly #hosts: Hosts;
  readonly #origins: Origins;
  readonly #cors: Cors;
  /** Pages of every origin may read responses. */
  readonly #everyone: boolean;
  readonly #mount: string;
  readonly #disabled: ReadonlySet<Group> | undefined;

  /** @throws ServiceError `config.invalid` */
  constructor(options: DoorOptions, { clock, random }: { readonly clock: Clock; readonly random: Random }) {
    const { cors = {}, disabled = [], bound = "127.0.0.1" } = options;
    this.#keys = new Keys(options.keys ?? []);
    if (this.#keys.none && options.insecure !== true && !isLoopback(bound)) {
      throw new ServiceError(
        "config.invalid",
        `host "${bound}" would let other machines drive this server without a key; set HEDDLE_API_KEYS, or add --insecure if that is meant`,
      );
    }
    this.#tokens = new Tokens(options.secret ?? Buffer.from(random.bytes(32)), clock);
    this.#hosts = new Hosts(options.hosts ?? [], bound);
    const { origins: listed, originPattern } = cors;
    const pattern = originPattern === undefined ? undefined : new RegExp(`^(?:${originPattern})$`);
    this.#origins = new Origins({ listed: listed ?? [], pattern, studio: options.studio === true });
    this.#cors = new Cors(cors);
    const open = listed === undefined && originPattern === undefined;
    this.#everyone = this.#origins.every || (open && !this.#keys.none);
    this.#mount = options.mount ?? "";
    this.#disabled = disabled.length === 0 ? undefined : new Set(disabled);
  }

  get hasKeys(): boolean {
    return !this.#keys.none;
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
    const group = groupOf(path);
    return group !== undefined && this.#disabled.has(group) ? undefined : path;
  }

  /** Identifies the client of a request. */
  meet(request: HttpRequest): Guest {
    const origin = request.header("origin");
    if (this.#keys.none) {
      const refusal = this.#foreign(request, origin);
      if (refusal !== undefined) return { tenant: undefined, headers: NONE, refusal };
      return origin === undefined ? HOME : { tenant: DEFAULT_TENANT, headers: this.#shown(origin, request) };
    }
    const headers = origin === undefined ? NONE : this.#shown(origin, request);
    return { tenant: this.#byHeader(request), headers };
  }

  /**
   * Identifies the client of a WebSocket handshake. Browsers apply no CORS to WebSockets, so the origin is checked here; they cannot set
   * headers, so a token may replace the key.
   */
  meetSocket(request: HttpRequest): Guest {
    const guest = this.meet(request);
    if (guest.refusal !== undefined || this.#keys.none) return guest;
    const origin = request.header("origin");
    if (origin !== undefined && !this.#mayRead(origin, request)) {
      return { ...guest, refusal: forbidden(`Pages of ${quoted(origin)} may not open WebSockets here`) };
    }
    if (guest.tenant !== undefined) return guest;
    const token = new URLSearchParams(request.query).get("token");
    return token === null ? guest : { ...guest, tenant: this.#tokens.tenantOf(token) };
  }

  /** The headers that answer a preflight request. */
  preflight(request: HttpRequest, { headers }: Guest): Headers {
    return headers === NONE ? headers : { ...headers, ...this.#cors.preflight(request) };
  }

  token(tenant: string): Token {
    return this.#tokens.issue(tenant);
  }

  #byHeader(request: HttpRequest): string | undefined {
    const key = request.header("x-api-key") ?? bearer(request.header("authorization"));
    return key === undefined ? undefined : this.#keys.tenantOf(key);
  }

  #shown(origin: string, request: HttpRequest): Headers {
    return this.#mayRead(origin, request) ? this.#cors.answer(origin, this.#everyone) : NONE;
  }

  #mayRead(origin: string, request: HttpRequest): boolean {
    if (this.#everyone || this.#origins.isListed(origin)) return true;
    if (isSame(origin, request.header("host") ?? "")) return true;
    // With keys and a list of origins, only the list counts.
    return this.#keys.none && isFromHere(origin);
  }

  /** Why a request is refused on a server without keys: its host or its origin is foreign. Undefined when it is not. */
  #foreign(request: HttpRequest, origin: string | undefined): ServiceError | undefined {
    const host = request.header("host") ?? "";
    if (!this.#hosts.has(host)) {
      return forbidden(`Host ${quoted(host)} is not served without a key; list it in http.allowed_hosts`);
    }
    const page = origin ?? hiddenOrigin(request);
    if (page === undefined || isFromHere(page) || isSame(page, host)) return undefined;
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
