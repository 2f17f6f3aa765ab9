import { type Permits, permitsOf } from "../model/permitted-resources.ts";
import type { Assistants } from "../service/assistants.ts";
import type { UserAuthorizer } from "./user-authorizer.ts";

/**
 * Decides which assistants a user's runs may use. A graph's default assistant belongs to nobody: anyone who may start runs may use it, as
 * on LangGraph's own server. Another assistant can only be used by those who may read it, because a run shows its settings.
 */
export async function usableAssistants(
  assistant: string,
  assistants: Pick<Assistants, "defaultId">,
  rules: UserAuthorizer,
): Promise<Permits | undefined> {
  if (assistants.defaultId(assistant) !== undefined) return undefined;
  return permitsOf(await rules.decide("assistants:read", { assistant_id: assistant }));
}
