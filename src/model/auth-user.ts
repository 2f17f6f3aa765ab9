import { isObject, type JsonObject } from "./json.ts";

/** The user that a request comes from, as the project's own authentication names it. */
export interface AuthUser {
  readonly identity: string;
  readonly permissions: readonly string[];
  readonly display_name: string;
  readonly is_authenticated: boolean;
  /** Fields of the project's own. */
  readonly [field: string]: unknown;
}

/**
 * Whose share of the budgets a client uses: its tenant's or, where users share the default tenant, its user's. One user who reads nothing of
 * large responses would otherwise hold up all others.
 */
export const budgetOwnerOf = (tenant: string, user: AuthUser | undefined): string =>
  user === undefined ? tenant : `${tenant} ${user.identity}`;

/** A user as it was stored with a cron. */
export const userFrom = (stored: JsonObject): AuthUser => stored as AuthUser;

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
 * A `configurable` with the members by which graphs know the user. `user`: the user as stored. null: the run has no user, and members that
 * the client has set are removed as well.
 */
export function withUser(configurable: JsonObject, user: JsonObject | null): JsonObject {
  const own = withoutUser(configurable);
  if (user === null) return own;
  const { identity, permissions } = user;
  return {
    ...own,
    // A value that the client may have set: only the members below can be trusted.
    user_id: own["user_id"] === "" || own["user_id"] === undefined ? identity : own["user_id"],
    [USER]: user,
    [USER_ID]: identity,
    [PERMISSIONS]: permissions,
  };
}

/** A run's user as others may see it: without the fields of the project's own, which may be secrets of the user. */
export function withoutUserFields(configurable: JsonObject): JsonObject {
  const user = configurable[USER];
  if (!isObject(user)) return configurable;
  const { identity, display_name } = user;
  return { ...configurable, [USER]: { identity, display_name } };
}

/** The identity of the user who started a run; undefined for a run without one. */
export const userIdOf = (configurable: JsonObject): unknown => configurable[USER_ID];
