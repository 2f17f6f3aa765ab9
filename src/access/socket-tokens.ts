import { createHmac, timingSafeEqual } from "node:crypto";
import { ServiceError } from "../model/errors.ts";
import type { Clock } from "../ports/clock.ts";

/** Milliseconds that a token is good for: it stands in an address, which proxies write down. */
const LIFE = 60_000;
/** Characters of the longest token that is looked at. */
const LONGEST = 300;
/** Bytes that a secret from outside must have. */
const SECRET = 32;

export interface Token {
  readonly token: string;
  /** Epoch milliseconds. */
  readonly expires: number;
}

/**
 * Tokens for a short while, for those who can send no header: browsers that open a WebSocket. A token is its tenant and its
 * end, signed: nothing is stored, and whoever has the secret can read those of another process too.
 */
export class Tokens {
  readonly #secret: Uint8Array | string;
  readonly #clock: Clock;

  /** @throws ServiceError `config.invalid` when the secret is too short to be one */
  constructor(secret: Uint8Array | string, clock: Clock) {
    if (Buffer.byteLength(secret) < SECRET) {
      throw new ServiceError("config.invalid", `The secret for tokens must have ${SECRET} bytes or more`);
    }
    this.#secret = secret;
    this.#clock = clock;
  }

  issue(tenant: string): Token {
    const expires = this.#clock.now() + LIFE;
    const claim = `${tenant}.${expires}`;
    return { token: `${claim}.${this.#sign(claim).toString("base64url")}`, expires };
  }

  /** Whose it is; undefined for one that is not ours or has had its time. */
  tenantOf(token: string): string | undefined {
    if (token.length > LONGEST) return undefined;
    const end = token.lastIndexOf(".");
    const claim = token.slice(0, Math.max(end, 0));
    const given = Buffer.from(token.slice(end + 1), "base64url");
    const own = this.#sign(claim);
    if (given.length !== own.length || !timingSafeEqual(given, own)) return undefined;
    const [tenant, expires] = claim.split(".");
    return Number(expires) > this.#clock.now() ? tenant : undefined;
  }

  #sign(claim: string): Buffer {
    return createHmac("sha256", this.#secret).update(`heddle.socket.${claim}`).digest();
  }
}
