import type { AuthUser } from "../model/auth-user.ts";
import type { Permission } from "../model/permission.ts";

/** What a user asks for: a resource and an action, as LangGraph names them. */
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

/** The request as a handler sees it. The handler may change it. */
export type AuthValue = Record<string, unknown>;

/** The project's rules: what each user may do. */
export interface Authorizer {
  /**
   * Decides on a request. Resolves with the resources that the request may reach; undefined: all. What was changed in `value` by then is
   * what the user asks for.
   * @throws ServiceError `auth.forbidden`, `auth.refused`, `auth.failed`, `auth.unavailable`
   */
  decide(user: AuthUser, event: AuthEvent, value: AuthValue): Promise<Permission | undefined>;
}
