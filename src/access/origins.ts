import { isLoopback, parseHost } from "./hosts.ts";

/**
 * The origins of web pages that are made for use with a server on the user's own machine: LangGraph Studio (one host for each region) and
 * Agent Chat.
 */
const STUDIO_ORIGINS = [
  "https://smith.langchain.com",
  "https://*.smith.langchain.com",
  "https://agentchat.vercel.app",
] as const;

export interface OriginOptions {
  /** The allowed origins, each as `https://name[:port]`, `https://*.name` or `null`; `*` allows all origins. */
  readonly listed: readonly string[];
  /** A regular expression that must match the whole origin; undefined if none is configured. */
  readonly pattern: RegExp | undefined;
  /** Whether the origins in {@link STUDIO_ORIGINS} are allowed too. */
  readonly studio: boolean;
}

const ORIGIN = /^(https?):\/\/([^/?#@]+)$/i;
const PORTS: { readonly [scheme: string]: string } = { http: "80", https: "443" };

/** The origins other than the server's own whose pages may call the server. */
export class AllowedOrigins {
  readonly #exact: ReadonlySet<string>;
  readonly #wildcards: readonly (readonly [before: string, after: string])[];
  readonly #pattern: RegExp | undefined;
  readonly allowsAll: boolean;

  constructor({ listed, pattern, studio }: OriginOptions) {
    const all = [...listed, ...(studio ? STUDIO_ORIGINS : [])].map((origin) =>
      origin.toLowerCase().replace(/\/$/, ""),
    );
    this.allowsAll = all.includes("*");
    this.#exact = new Set(all);
    this.#wildcards = all.flatMap((origin) => {
      const star = origin.indexOf("*.");
      return star < 0 ? [] : [[origin.slice(0, star), origin.slice(star + 1)] as const];
    });
    this.#pattern = pattern;
  }

  isListed(origin: string): boolean {
    const lower = origin.toLowerCase();
    if (this.allowsAll || this.#exact.has(lower)) return true;
    if (this.#pattern?.test(origin)) return true;
    return this.#wildcards.some(([before, after]) => {
      if (!lower.startsWith(before) || !lower.endsWith(after)) return false;
      const label = lower.slice(before.length, lower.length - after.length);
      return /^[a-z0-9-]+(\.[a-z0-9-]+)*$/.test(label);
    });
  }
}

/** Whether an origin is that of a server on this machine, on any port. */
export function isLocalOrigin(origin: string): boolean {
  const page = parseHost(ORIGIN.exec(origin)?.[2] ?? "");
  return page !== undefined && isLoopback(page.name);
}

/** Whether an origin is that of this server. `host`: the request's `Host` header. */
export function isSameOrigin(origin: string, host: string): boolean {
  const [, scheme = "", rest = ""] = ORIGIN.exec(origin) ?? [];
  const page = parseHost(rest);
  const own = parseHost(host);
  if (page === undefined || own === undefined) return false;
  const usual = PORTS[scheme.toLowerCase()];
  // The schemes are not compared: behind a proxy that terminates TLS, this server does not know the scheme of its own URL.
  return own.name === page.name && (own.port || usual) === (page.port || usual);
}
