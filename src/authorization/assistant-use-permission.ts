import { type Permits, permitsOf } from "../model/permitted-resources.ts";
import type { Assistants } from "../service/assistants.ts";
import type { UserAuthorizer } from "./user-authorizer.ts";

/**
 * Decides whether a user's run may use an assistant. Undefined: the run may use it. A function: the run may use it if the function accepts
 * the assistant's metadata.
 */
export async function permitsToUseAssistant(
  assistant: string,
  assistants: Pick<Assistants, "defaultId">,
  rules: UserAuthorizer,
): Promise<Permits | undefined> {
  // A graph's default assistant has no owner: everybody who may start runs may use it, as on LangGraph's own server.
  if (assistants.defaultId(assistant) !== undefined) return undefined;
  // A run shows the settings of its assistant, so the user must be permitted to read the assistant.
  return permitsOf(await rules.decide("assistants:read", { assistant_id: assistant }));
}
