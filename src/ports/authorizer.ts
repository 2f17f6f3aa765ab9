import type { AuthUser } from "../model/auth-user.ts";
import type { Permission } from "../model/permitted-resources.ts";

/** What a user wants to do, as `resource:action`. The names are LangGraph's. */
export type AuthEvent =
  | "threads:create"
  | "threads:read"
  | "threads:update"
  | "threads:delete"
  | "threads:search"
  | "threads:create_run"
  | "assistants:create"
  | "assistants:read"
  | "assistants:update"
  | "assistants:delete"
  | "assistants:search"
  | "crons:create"
  | "crons:read"
  | "crons:update"
  | "crons:delete"
  | "crons:search"
  | "store:put"
  | "store:get"
  | "store:search"
  | "store:delete"
  | "store:list_namespaces";

/**
 * The data of a request (body and path parameters, by name) that the project's authorization handlers get and may
 * change.
 */
export type AuthValue = Record<string, unknown>;

/** The project's rules: what each user may do. */
export interface Authorizer {
  /**
   * Rejects if `user` may not make the request. Otherwise resolves with the permission that limits the resources that
   * the request may reach, or with undefined if it may reach all resources. The project's handlers may change `value`
   * before the promise resolves; the request then continues with the changed value.
   * @throws ServiceError `auth.forbidden`, `auth.refused`, `auth.failed`, `auth.unavailable`
   */
  decide(user: AuthUser, event: AuthEvent, value: AuthValue): Promise<Permission | undefined>;
}
