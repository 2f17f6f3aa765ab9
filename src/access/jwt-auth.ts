import type * as Jose from "jose";
import type { AuthUser } from "../model/auth-user.ts";
import { ServiceError } from "../model/errors.ts";
import type { JsonObject } from "../model/json.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/logger.ts";
import { authFailure } from "./auth-errors.ts";
import type { Auth, Authenticator } from "./custom-auth.ts";
import { OwnerRules } from "./owner-rules.ts";

export interface JwtOptions {
  /** The value of `iss` that tokens must have. */
  readonly issuer: string;
  /** The value of `aud` that tokens must have. Of several values, one is enough. */
  readonly audience: string | readonly string[];
  /** The provider's public keys: the URL of a JSON Web Key Set, or the set itself. */
  readonly jwks: URL | JsonObject;
}

interface JwtDeps {
  readonly clock: Clock;
  readonly logger: Logger;
}

/** A longer token is refused. */
const MAX_TOKEN_CHARACTERS = 16 * 1024;
/** The number of seconds by which the provider's clock may differ from the clock of this machine. */
const CLOCK_TOLERANCE_SECONDS = 5;
/** Milliseconds in which the provider must respond with its keys. */
const FETCH_TIMEOUT_MS = 5_000;
/**
 * The accepted signature algorithms. All of them have a public key: with a shared secret, anyone who can verify a token could also create
 * one.
 */
const ALGORITHMS = [
  "RS256",
  "RS384",
  "RS512",
  "PS256",
  "PS384",
  "PS512",
  "ES256",
  "ES384",
  "ES512",
  "EdDSA",
  "Ed25519",
];

const authRequired = (message: string, cause?: unknown) =>
  new ServiceError("auth.required", message, { cause });

/**
 * Creates authentication by the access tokens of an identity provider (OpenID Connect), with the rules of {@link OwnerRules}. The library
 * `jose` is loaded only here, because most servers do not need it.
 * @throws ServiceError `config.invalid` if the key set cannot be used
 */
export async function createJwtAuth(options: JwtOptions, deps: JwtDeps): Promise<Auth> {
  const jose = await import("jose");
  const authenticator = new JwtAuthenticator(jose, keysOf(jose, options.jwks), options, deps);
  const rules = new OwnerRules();
  return {
    authenticate: (request) => authenticator.authenticate(request),
    decide: (user, event, value) => rules.decide(user, event, value),
  };
}

function keysOf(
  { createLocalJWKSet, createRemoteJWKSet }: typeof Jose,
  jwks: URL | JsonObject,
): Jose.JWTVerifyGetKey {
  if (jwks instanceof URL) return createRemoteJWKSet(jwks, { timeoutDuration: FETCH_TIMEOUT_MS });
  try {
    return createLocalJWKSet(jwks as unknown as Jose.JSONWebKeySet);
  } catch (cause) {
    throw new ServiceError("config.invalid", "auth.jwt.jwks is no JSON Web Key Set", { cause });
  }
}

class JwtAuthenticator implements Authenticator {
  readonly #jose: typeof Jose;
  readonly #keys: Jose.JWTVerifyGetKey;
  readonly #options: JwtOptions;
  readonly #deps: JwtDeps;

  constructor(jose: typeof Jose, keys: Jose.JWTVerifyGetKey, options: JwtOptions, deps: JwtDeps) {
    this.#jose = jose;
    this.#keys = keys;
    this.#options = options;
    this.#deps = deps;
  }

  async authenticate(request: Request): Promise<AuthUser> {
    const [, token] = /^bearer +(\S+) *$/i.exec(request.headers.get("authorization") ?? "") ?? [];
    if (token === undefined || token.length > MAX_TOKEN_CHARACTERS)
      throw authRequired("A valid token is needed: send it as Authorization: Bearer");
    const claims = await this.#verify(token);
    if (typeof claims.sub === "string" && claims.sub !== "") return userOf(claims, claims.sub);
    throw this.#refusal("The token names no user", new TypeError('"sub" is empty, or no text'));
  }

  async #verify(token: string): Promise<Jose.JWTPayload> {
    const { issuer, audience } = this.#options;
    try {
      const { payload } = await this.#jose.jwtVerify(token, this.#keys, {
        issuer,
        audience: typeof audience === "string" ? audience : [...audience],
        algorithms: ALGORITHMS,
        requiredClaims: ["sub", "exp"],
        clockTolerance: CLOCK_TOLERANCE_SECONDS,
        currentDate: new Date(this.#deps.clock.now()),
      });
      return payload;
    } catch (cause) {
      throw this.#errorOf(cause);
    }
  }

  /**
   * Creates the error for a refused token. Which check has failed is only logged, because that knowledge would help someone who guesses
   * tokens.
   */
  #refusal(message: string, cause: Error): ServiceError {
    this.#deps.logger.debug("a token was refused", { why: cause.message });
    return authRequired(message, cause);
  }

  #errorOf(cause: unknown): ServiceError {
    const { errors } = this.#jose;
    if (cause instanceof errors.JWTExpired) return this.#refusal("The token has expired", cause);
    const isTokenFault =
      cause instanceof errors.JWTClaimValidationFailed ||
      cause instanceof errors.JWTInvalid ||
      cause instanceof errors.JWSInvalid ||
      cause instanceof errors.JWSSignatureVerificationFailed ||
      cause instanceof errors.JOSEAlgNotAllowed ||
      cause instanceof errors.JOSENotSupported ||
      cause instanceof errors.JWKSNoMatchingKey;
    if (isTokenFault) return this.#refusal("The token is not valid here", cause);
    const isKeySetFault =
      cause instanceof errors.JWKSInvalid ||
      cause instanceof errors.JWKInvalid ||
      cause instanceof errors.JWKSMultipleMatchingKeys;
    if (isKeySetFault) return authFailure("key set", cause);
    return new ServiceError("auth.unavailable", "The keys that tokens are checked with cannot be had", {
      cause,
    });
  }
}

function userOf(claims: Jose.JWTPayload, sub: string): AuthUser {
  const { name, preferred_username, email, scope, scp } = claims;
  const shown = [name, preferred_username, email].find((text) => typeof text === "string" && text !== "");
  return {
    identity: sub,
    display_name: (shown as string | undefined) ?? sub,
    permissions: scopesOf(scope ?? scp),
    is_authenticated: true,
    claims,
  };
}

/** The scopes of a token, from its claim `scope`: one string, separated by spaces. Some providers send a list instead. */
function scopesOf(scope: unknown): readonly string[] {
  if (typeof scope === "string") return scope.split(" ").filter((one) => one !== "");
  return Array.isArray(scope) ? scope.filter((one) => typeof one === "string") : [];
}
