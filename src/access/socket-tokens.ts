import { createHmac, timingSafeEqual } from "node:crypto";
import { ServiceError } from "../model/errors.ts";
import type { Clock } from "../ports/clock.ts";

/** Milliseconds that a token is valid. Short, because tokens stand in URLs, which proxies log. */
const LIFE = 60_000;
/** Characters of the longest token that is checked. */
const MAX_TOKEN_CHARACTERS = 300;
/** Bytes that a configured secret must have at least. */
const SECRET = 32;

export interface SocketToken {
  readonly token: string;
  /** Epoch milliseconds. */
  readonly expires: number;
}

/**
 * Short-lived tokens for browsers that open a WebSocket, since they cannot send headers. A token consists of its tenant and its expiry,
 * signed. Nothing is stored, and processes with the same secret accept each other's tokens.
 */
export class SocketTokens {
  readonly #secret: Uint8Array | string;
  readonly #clock: Clock;

  /** @throws ServiceError `config.invalid` when the secret is too short */
  constructor(secret: Uint8Array | string, clock: Clock) {
    if (Buffer.byteLength(secret) < SECRET) {
      throw new ServiceError("config.invalid", `The secret for tokens must have ${SECRET} bytes or more`);
    }
    this.#secret = secret;
    this.#clock = clock;
  }

  issue(tenant: string): SocketToken {
    const expires = this.#clock.now() + LIFE;
    const claim = `${tenant}.${expires}`;
    return { token: `${claim}.${this.#sign(claim).toString("base64url")}`, expires };
  }

  /** The tenant of a token; undefined when the token is invalid or has expired. */
  tenantOf(token: string): string | undefined {
    if (token.length > MAX_TOKEN_CHARACTERS) return undefined;
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
