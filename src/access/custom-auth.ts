import { ServiceError } from "../model/errors.ts";
import type { AuthUser } from "../model/auth-user.ts";
import type { Permission } from "../model/permitted-resources.ts";
import type { AuthEvent, Authorizer, AuthValue } from "../ports/authorizer.ts";
import type { Scheduler } from "../ports/scheduler.ts";
import { TimeLimitError, withTimeLimit } from "../ports/with-time-limit.ts";
import { authErrorOf, authFailure, notAuthorized } from "./auth-errors.ts";
import { compileAuthFilter } from "./auth-filter.ts";

/** Authenticates requests: finds out which user sent them. */
export interface Authenticator {
  /**
   * Returns the user who sent a request.
   * @throws ServiceError `auth.required`, `auth.forbidden`, `auth.refused`, `auth.failed`, `auth.unavailable`, `server.busy`
   */
  authenticate(request: Request): Promise<AuthUser>;
}

/** Authenticates requests, and decides what each user may do. */
export type Auth = Authenticator & Authorizer;

/** The argument of a handler that the project has registered with `Auth.on`. */
interface HandlerCall {
  readonly event: AuthEvent;
  readonly resource: string;
  readonly action: string;
  readonly value: AuthValue;
  readonly user: AuthUser;
  readonly permissions: readonly string[];
}

/**
 * The handlers in an `Auth` object of `@langchain/langgraph-sdk/auth`. The object comes from the project's own copy of that package, in any
 * version, so it is recognised by this shape.
 */
export interface AuthHandlers {
  readonly "~handlerCache": {
    readonly authenticate?: (request: Request) => unknown;
    /** The handlers by the names under which they were registered. Each takes a {@link HandlerCall}. */
    readonly callbacks?: { readonly [event: string]: (call: never) => unknown };
  };
}

/** The longest time in milliseconds that a call of the project's code may take. */
const MAX_CALL_MS = 10_000;
/** The largest number of `authenticate` calls in progress. Each call keeps its request in memory. */
const MAX_AUTHENTICATIONS = 1_024;

const AUTHENTICATE = "authenticate handler";

/** Returns why a value cannot be used as `Auth`; undefined if it can be used. */
export function whyNotAuth(value: unknown): string | undefined {
  const handlers =
    typeof value === "object" && value !== null
      ? (value as { readonly "~handlerCache"?: unknown })["~handlerCache"]
      : undefined;
  if (typeof handlers !== "object" || handlers === null)
    return "is no Auth of @langchain/langgraph-sdk/auth: export what new Auth() gives";
  const { authenticate } = handlers as { readonly authenticate?: unknown };
  return typeof authenticate === "function"
    ? undefined
    : "has no authenticate handler, so no user could be identified: call .authenticate(...) on it";
}

/**
 * Authentication and authorization by the handlers of an `Auth` object. Results are not cached: the handlers are called for every request.
 */
export class CustomAuth implements Auth {
  readonly #handlers: AuthHandlers;
  readonly #scheduler: Scheduler;
  #authenticating = 0;

  /** @throws ServiceError `config.invalid` if `auth` does not have the shape of {@link AuthHandlers} */
  constructor(auth: AuthHandlers, scheduler: Scheduler) {
    const fault = whyNotAuth(auth);
    if (fault !== undefined) throw new ServiceError("config.invalid", `auth ${fault}`);
    this.#handlers = auth;
    this.#scheduler = scheduler;
  }

  async authenticate(request: Request): Promise<AuthUser> {
    if (this.#authenticating >= MAX_AUTHENTICATIONS)
      throw new ServiceError("server.busy", "Too many requests are being authenticated; try again later");
    this.#authenticating++;
    let answer: unknown;
    try {
      answer = await this.#call(AUTHENTICATE, () => this.#handlers["~handlerCache"].authenticate?.(request));
    } finally {
      this.#authenticating--;
    }
    return userOf(answer);
  }

  async decide(user: AuthUser, event: AuthEvent, value: AuthValue): Promise<Permission | undefined> {
    const [resource = "", action = ""] = event.split(":");
    const handler = this.#handlerOf(event, resource, action);
    if (handler === undefined) return undefined;
    const { permissions } = user;
    const call: HandlerCall = { event, resource, action, value, user, permissions };
    const what = `handler of ${event}`;
    const answer = await this.#call(what, () => handler(call));
    if (answer === undefined || answer === null || answer === true) return undefined;
    if (answer === false) throw notAuthorized();
    try {
      return compileAuthFilter(answer);
    } catch (cause) {
      throw authFailure(what, cause);
    }
  }

  /**
   * The most specific handler: the one for the event, else for the resource, else for the action on all resources, else for everything.
   * Undefined if there is none.
   */
  #handlerOf(event: AuthEvent, resource: string, action: string) {
    const { callbacks } = this.#handlers["~handlerCache"];
    if (callbacks === undefined) return undefined;
    for (const name of [event, resource, `*:${action}`, "*"]) {
      const handler = Object.hasOwn(callbacks, name) ? callbacks[name] : undefined;
      if (handler !== undefined) return handler as (call: HandlerCall) => unknown;
    }
    return undefined;
  }

  /** Calls the project's code. The promise rejects if the code takes longer than {@link MAX_CALL_MS}. */
  #call(what: string, call: () => unknown): Promise<unknown> {
    return withTimeLimit(this.#scheduler, MAX_CALL_MS, call).catch((cause: unknown) => {
      if (!(cause instanceof TimeLimitError)) throw authErrorOf(cause, what);
      throw new ServiceError(
        "auth.unavailable",
        `The project's ${what} did not answer in ${MAX_CALL_MS / 1_000} s`,
      );
    });
  }
}

/** Reads the user from the result of `authenticate`: the identity as a string, or an object with a member `identity`. */
function userOf(answer: unknown): AuthUser {
  if (typeof answer === "string" && answer !== "") return newUser({}, answer, []);
  if (typeof answer === "object" && answer !== null) {
    const { identity, permissions } = answer as {
      readonly identity?: unknown;
      readonly permissions?: unknown;
    };
    if (typeof identity === "string" && identity !== "")
      return newUser(answer, identity, Array.isArray(permissions) ? permissions.map(String) : []);
  }
  const cause = new TypeError("it must give a user's identity, a string, or an object with identity");
  throw authFailure(AUTHENTICATE, cause);
}

function newUser(fields: object, identity: string, permissions: readonly string[]): AuthUser {
  const { is_authenticated = true, display_name = identity } = fields as Partial<AuthUser>;
  return { ...fields, identity, permissions, is_authenticated, display_name };
}
