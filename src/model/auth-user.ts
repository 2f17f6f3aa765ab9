import { isObject, type JsonObject } from "./json.ts";

/** The user who sent a request, as the project's own authentication or the access token names it, with defaults for missing fields. */
export interface AuthUser {
  readonly identity: string;
  readonly permissions: readonly string[];
  readonly display_name: string;
  readonly is_authenticated: boolean;
  /** Further fields, which the project's authentication has added. */
  readonly [field: string]: unknown;
}

/**
 * The name under which the time and memory budgets of a request are counted: the user's, or the tenant's if the request has no user. Users
 * do not share the budgets of their tenant: a user who requests large responses and does not read them would block the others.
 */
export const budgetOwnerOf = (tenant: string, user: AuthUser | undefined): string =>
  user === undefined ? tenant : `${tenant} ${user.identity}`;

/** Converts the user that was stored with a cron. */
export const storedUserOf = (stored: JsonObject): AuthUser => stored as AuthUser;

/** Members of a run's `configurable` that name its user. Clients cannot set them. */
const USER = "langgraph_auth_user";
const USER_ID = "langgraph_auth_user_id";
const PERMISSIONS = "langgraph_auth_permissions";

/** A `configurable` without the members that name a user. */
export function withoutUser(configurable: JsonObject): JsonObject {
  const { [USER]: _user, [USER_ID]: _id, [PERMISSIONS]: _permissions, ...rest } = configurable;
  return rest;
}

/**
 * Sets the members of a `configurable` that tell a graph its user, and removes what the client has put there. `user`: the user as stored;
 * null: the run has no user.
 */
export function withUser(configurable: JsonObject, user: JsonObject | null): JsonObject {
  const own = withoutUser(configurable);
  if (user === null) return own;
  const { identity, permissions } = user;
  return {
    ...own,
    // The client may have set `user_id`. Only the members below can be trusted.
    user_id: own["user_id"] === "" || own["user_id"] === undefined ? identity : own["user_id"],
    [USER]: user,
    [USER_ID]: identity,
    [PERMISSIONS]: permissions,
  };
}

/**
 * The metadata of a checkpoint that a user has made by an update of the state. The checkpoints of a user's run get the same members from
 * the run's `configurable`.
 */
export const metadataOfUser = (identity: string): JsonObject => ({ user_id: identity, [USER_ID]: identity });

/** A run's `configurable` as other users may see it: without the fields that the project added to the user, which may be secrets. */
export function withoutUserFields(configurable: JsonObject): JsonObject {
  const user = configurable[USER];
  if (!isObject(user)) return configurable;
  const { identity, display_name } = user;
  return { ...configurable, [USER]: { identity, display_name } };
}

/** The identity of the user who started a run; undefined for a run without a user. */
export const userIdOf = (configurable: JsonObject): unknown => configurable[USER_ID];
