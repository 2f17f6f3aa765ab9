import { isIP } from "node:net";

/** A host as in a `Host` header or a URL: `name`, `name:port` or `[::1]:port`. */
export interface ParsedHost {
  /** The name in lower case, or an IPv6 address without brackets. */
  readonly name: string;
  readonly port: string;
}

const HOST = /^(?:\[([0-9a-f:.]+)\]|([^:[\]/?#@\s]+))(?::(\d{1,5}))?$/i;

export function parseHost(text: string): ParsedHost | undefined {
  const match = HOST.exec(text);
  if (match === null) return undefined;
  const name = (match[1] ?? match[2] ?? "").toLowerCase();
  // A name with a dot at its end is the same host as the name without that dot.
  return { name: name.endsWith(".") ? name.slice(0, -1) : name, port: match[3] ?? "" };
}

/** Whether a name or address can only mean this machine. Browsers resolve `*.localhost` themselves, without DNS. */
export function isLoopback(name: string): boolean {
  if (name === "localhost" || name.endsWith(".localhost") || name === "::1") return true;
  return name.startsWith("127.") && isIP(name) === 4;
}

/** The largest number of hosts for which the result is cached. Most requests name the same few hosts. */
const MAX_CACHED = 64;

/**
 * The hosts in requests that a server without credentials accepts. The check of the host protects against DNS rebinding, in which a page of
 * another site uses a name that resolves to this server. For the browser, the page and the server then have the same origin; only the
 * `Host` header shows the name of the other site.
 */
export class AllowedHosts {
  readonly #listed: readonly string[];
  readonly #anyAddress: boolean;
  readonly #known = new Map<string, boolean>();

  /**
   * `listed`: the allowed hosts, each as `name`, `name:port` or `*.name`; `*` allows all hosts. `bound`: the address on which the server
   * listens, which is allowed too. If the server listens on all addresses, every IP address is allowed, because DNS rebinding always uses a
   * name.
   */
  constructor(listed: readonly string[], bound: string) {
    const all = bound === "0.0.0.0" || bound === "::" || bound === "";
    this.#anyAddress = all;
    this.#listed = [...listed, ...(all ? [] : [bound])].map((entry) => entry.toLowerCase());
  }

  has(header: string): boolean {
    const known = this.#known.get(header);
    if (known !== undefined) return known;
    const answer = this.#isAllowed(header);
    if (this.#known.size < MAX_CACHED) this.#known.set(header, answer);
    return answer;
  }

  #isAllowed(header: string): boolean {
    const host = parseHost(header);
    if (host === undefined) return false;
    const { name, port } = host;
    if (isLoopback(name) || (this.#anyAddress && isIP(name) !== 0)) return true;
    return this.#listed.some((entry) => {
      if (entry === "*" || entry === name || entry === `[${name}]`) return true;
      if (entry === `${name}:${port}` || entry === `[${name}]:${port}`) return true;
      return entry.startsWith("*.") && name.endsWith(entry.slice(1));
    });
  }
}
