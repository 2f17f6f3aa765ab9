import { isIP } from "node:net";

/** A host as a `Host` header or an address writes it: `name`, `name:port`, `[::1]:port`. */
export interface Host {
  /** Lower case; an IPv6 address without its brackets. */
  readonly name: string;
  readonly port: string;
}

const HOST = /^(?:\[([0-9a-f:.]+)\]|([^:[\]/?#@\s]+))(?::(\d{1,5}))?$/i;

export function parseHost(text: string): Host | undefined {
  const match = HOST.exec(text);
  if (match === null) return undefined;
  const name = (match[1] ?? match[2] ?? "").toLowerCase();
  // A dot at the end names the same host.
  return { name: name.endsWith(".") ? name.slice(0, -1) : name, port: match[3] ?? "" };
}

/** Names that lead to this machine alone, whatever a name server says: browsers resolve `*.localhost` themselves. */
export function isLoopback(name: string): boolean {
  if (name === "localhost" || name.endsWith(".localhost") || name === "::1") return true;
  return name.startsWith("127.") && isIP(name) === 4;
}

/** Hosts most requests name again and again; more than these are not remembered. */
const REMEMBERED = 64;

/**
 * Which hosts a server without a key answers to. A page whose name has been turned to point here (DNS rebinding) is to the
 * browser of the same origin as we are: only the name that it asks for gives it away.
 */
export class Hosts {
  readonly #listed: readonly string[];
  readonly #anyAddress: boolean;
  readonly #known = new Map<string, boolean>();

  /**
   * `listed`: `name`, `name:port`, `*.name`, or `*` for all. `bound`: where the server listens; an address that was meant
   * is answered to, and where it is every address of the machine, each of them: a rebound page comes by a name.
   */
  constructor(listed: readonly string[], bound: string) {
    const all = bound === "0.0.0.0" || bound === "::" || bound === "";
    this.#anyAddress = all;
    this.#listed = [...listed, ...(all ? [] : [bound])].map((entry) => entry.toLowerCase());
  }

  has(header: string): boolean {
    const known = this.#known.get(header);
    if (known !== undefined) return known;
    const answer = this.#look(header);
    if (this.#known.size < REMEMBERED) this.#known.set(header, answer);
    return answer;
  }

  #look(header: string): boolean {
    const host = parseHost(header);
    if (host === undefined) return false;
    const { name, port } = host;
    if (isLoopback(name) || (this.#anyAddress && isIP(name) !== 0)) return true;
    return this.#listed.some((entry) => {
      if (entry === "*" || entry === name || entry === `${name}:${port}` || entry === `[${name}]`)
        return true;
      return entry.startsWith("*.") && name.endsWith(entry.slice(1));
    });
  }
}
