import { type Permits, permitsOf } from "../model/permission.ts";
import type { Assistants } from "../service/assistants.ts";
import type { UserRules } from "./user-rules.ts";

/**
 * Which assistants the runs of a user may use, as far as this one is concerned. A graph's default assistant belongs to nobody: who may start
 * runs may run it, as on LangGraph's own server. Another one can only be run by those who may read it, because a run shows its settings.
 */
export async function usableAssistants(
  assistant: string,
  assistants: Pick<Assistants, "defaultId">,
  rules: UserRules,
): Promise<Permits | undefined> {
  if (assistants.defaultId(assistant) !== undefined) return undefined;
  return permitsOf(await rules.decide("assistants:read", { assistant_id: assistant }));
}
