import { createHmac, timingSafeEqual } from "node:crypto";
import type { AuthUser } from "../model/auth-user.ts";
import { ServiceError } from "../model/errors.ts";
import type { Clock } from "../ports/clock.ts";
import type { Random } from "../ports/random.ts";

/** Milliseconds for which a token is valid. Short, because tokens are part of URLs, which proxies log. */
const LIFETIME_MS = 60_000;
/** A longer token is refused without a check of its signature. */
const MAX_TOKEN_CHARACTERS = 300;
/** The minimum size of a configured secret, in bytes. */
const MIN_SECRET_BYTES = 32;
/** The largest number of unexpired tokens that were issued for users. For each token, its user is kept in memory. */
const MAX_USER_TOKENS = 10_000;
/** The largest number of unexpired tokens of one user. */
const MAX_TOKENS_OF_ONE_USER = 100;

export interface SocketToken {
  readonly token: string;
  /** The time at which the token expires, in epoch milliseconds. */
  readonly expires: number;
}

/** The user or tenant for whom a token was issued. */
export interface TokenHolder {
  readonly tenant: string;
  readonly user?: AuthUser;
}

interface UserEntry {
  readonly user: AuthUser;
  readonly expires: number;
}

/**
 * Short-lived tokens for browsers, which cannot set headers when they open a WebSocket. A token consists of a tenant, an expiry time and a
 * signature, so tokens need not be stored, and processes with the same secret accept each other's tokens. The token of a user also contains
 * a random id, by which the process that issued it finds the user in memory. The user's fields may be secret, so they are not part of the
 * token.
 */
export class SocketTokens {
  readonly #secret: Uint8Array | string;
  readonly #clock: Clock;
  readonly #random: Random;
  /** The users for whom tokens were issued, by the random id in the token, oldest first. */
  readonly #users = new Map<string, UserEntry>();

  /** @throws ServiceError `config.invalid` if the secret is too short */
  constructor(
    secret: Uint8Array | string,
    { clock, random }: { readonly clock: Clock; readonly random: Random },
  ) {
    if (Buffer.byteLength(secret) < MIN_SECRET_BYTES) {
      throw new ServiceError(
        "config.invalid",
        `The secret for tokens must have ${MIN_SECRET_BYTES} bytes or more`,
      );
    }
    this.#secret = secret;
    this.#clock = clock;
    this.#random = random;
  }

  /**
   * Issues a token for a tenant or, if `user` is given, for this user.
   * @throws ServiceError `server.busy` if there are too many unexpired tokens of users
   */
  issue({ tenant, user }: TokenHolder): SocketToken {
    const expires = this.#clock.now() + LIFETIME_MS;
    const claim =
      user === undefined ? `${tenant}.${expires}` : `${tenant}.${expires}.${this.#hold(user, expires)}`;
    return { token: `${claim}.${this.#sign(claim).toString("base64url")}`, expires };
  }

  /**
   * The user or tenant for whom a token was issued. Undefined if the token is invalid or has expired, or is the token of a user that
   * another process has issued.
   */
  holderOf(token: string): TokenHolder | undefined {
    if (token.length > MAX_TOKEN_CHARACTERS) return undefined;
    const end = token.lastIndexOf(".");
    const claim = token.slice(0, Math.max(end, 0));
    const given = Buffer.from(token.slice(end + 1), "base64url");
    const own = this.#sign(claim);
    if (given.length !== own.length || !timingSafeEqual(given, own)) return undefined;
    const [tenant, expires, number] = claim.split(".");
    if (tenant === undefined || !(Number(expires) > this.#clock.now())) return undefined;
    if (number === undefined) return { tenant };
    const user = this.#users.get(number)?.user;
    return user && { tenant, user };
  }

  #hold(user: AuthUser, expires: number): string {
    const now = this.#clock.now();
    let own = 0;
    for (const [number, held] of this.#users) {
      if (held.expires <= now) this.#users.delete(number);
      else if (held.user.identity === user.identity) own++;
    }
    if (own >= MAX_TOKENS_OF_ONE_USER || this.#users.size >= MAX_USER_TOKENS)
      throw new ServiceError("server.busy", "Too many tokens are valid at the moment; try again later");
    const number = Buffer.from(this.#random.bytes(16)).toString("base64url");
    this.#users.set(number, { user, expires });
    return number;
  }

  #sign(claim: string): Buffer {
    return createHmac("sha256", this.#secret).update(`heddle.socket.${claim}`).digest();
  }
}
