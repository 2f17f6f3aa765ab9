import type { AuthUser } from "../model/auth-user.ts";
import { ServiceError } from "../model/errors.ts";
import { isObject, toStorable, type JsonObject } from "../model/json.ts";
import { bothPermit, type Permission, permitsOf } from "../model/permitted-resources.ts";
import type { ThreadKey } from "../model/thread.ts";
import { type Checks, checkedMembers, isCount, withoutMembers } from "./mutated-auth-value-checks.ts";
import type { AuthEvent, Authorizer, AuthValue } from "../ports/authorizer.ts";

/** The maximum number of characters of a user as JSON, which is stored with each run of the user. */
const MAX_USER_CHARACTERS = 64 * 1024;

/** Events of requests that create a resource with metadata. */
const CREATING_EVENTS: ReadonlySet<AuthEvent> = new Set([
  "threads:create",
  "threads:create_run",
  "assistants:create",
  "crons:create",
]);
/** Events of requests that may write metadata. */
const METADATA_EVENTS: ReadonlySet<AuthEvent> = new Set([
  ...CREATING_EVENTS,
  "threads:update",
  "assistants:update",
  "crons:update",
]);

/** The project's rules, applied to one user. */
export class UserAuthorizer {
  readonly user: AuthUser;
  readonly #authorizer: Authorizer;
  #stored: JsonObject | undefined;

  constructor(authorizer: Authorizer, user: AuthUser) {
    this.#authorizer = authorizer;
    this.user = user;
  }

  /**
   * Lets the rules decide about a request: see {@link Authorizer.decide}. If the request writes metadata, the members that the permission
   * requires are added to the metadata, so that the user may reach the resource afterwards.
   */
  async decide(event: AuthEvent, value: AuthValue): Promise<Permission | undefined> {
    const permission = await this.#authorizer.decide(this.user, event, value);
    if (permission === undefined || !METADATA_EVENTS.has(event)) return permission;
    const { metadata = null } = value;
    if (isObject(metadata) || (metadata === null && CREATING_EVENTS.has(event)))
      value["metadata"] = { ...metadata, ...permission.members };
    return permission;
  }

  /**
   * Lets the rules decide about a request for one thread. Resolves with the key to use from then on, which contains the resulting
   * permission: through this key, a thread that is not permitted counts as missing. Rejects like {@link decide}.
   */
  async threadKey(
    key: ThreadKey,
    event: AuthEvent,
    value: AuthValue = { thread_id: key.thread },
  ): Promise<ThreadKey> {
    return withPermission(key, await this.decide(event, value));
  }

  /**
   * Lets the rules decide about a search or a count. Resolves with the query as the rules have changed it, and the permission that limits
   * its results. `checks`: type checks of the members, besides `limit` and `offset`, that handlers may change or remove.
   */
  async decideQuery<Q extends { readonly limit: number; readonly offset: number }, C extends Checks>(
    event: AuthEvent,
    asked: Q,
    checks: C,
  ) {
    const changeable = { ...checks, limit: isCount, offset: isCount };
    const members: { readonly [name: string]: unknown } = asked;
    const value: AuthValue = Object.fromEntries(Object.keys(changeable).map((name) => [name, members[name]]));
    const permission = await this.decide(event, value);
    return { query: { ...withoutMembers(asked, checks), ...checkedMembers(value, changeable) }, permission };
  }

  /** Like {@link decideQuery}, but the permission is added to the query as a predicate, `permits`. */
  async permittedQuery<Q extends { readonly limit: number; readonly offset: number }, C extends Checks>(
    event: AuthEvent,
    asked: Q,
    checks: C,
  ) {
    const { query, permission } = await this.decideQuery(event, asked, checks);
    return { ...query, permits: permitsOf(permission) };
  }

  /** The user as stored with runs and crons. @throws ServiceError `auth.failed` if the user cannot be stored */
  get stored(): JsonObject {
    return (this.#stored ??= storedForm(this.user));
  }
}

/** Returns the key with a permission added. */
export function withPermission(key: ThreadKey, permission: Permission | undefined): ThreadKey {
  const permits = bothPermit(key.permits, permitsOf(permission));
  return permits === undefined ? key : { tenant: key.tenant, thread: key.thread, permits };
}

function storedForm(user: AuthUser): JsonObject {
  let text: string | undefined;
  try {
    // JSON leaves out functions, which a user object may contain.
    text = JSON.stringify(user);
    if (text.length <= MAX_USER_CHARACTERS) return toStorable(JSON.parse(text), "user") as JsonObject;
  } catch (cause) {
    throw new ServiceError("auth.failed", "The user cannot be stored with a run; the log has the cause", {
      cause,
    });
  }
  const message = `The user has ${text.length} characters as JSON, and may have ${MAX_USER_CHARACTERS}`;
  throw new ServiceError("auth.failed", "The user is too large to be stored with a run", {
    cause: new RangeError(message),
  });
}
