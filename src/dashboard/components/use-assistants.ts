import { listAssistants } from "../api/client.ts";
import type { Assistant } from "../api/records.ts";
import { withoutDirectionControls } from "./one-line-text.ts";
import { type Resource, useResource } from "./use-resource.ts";

/** Loads all assistants. The default assistants, which the server creates for its graphs, come first. */
export function useAssistantList(): Resource<readonly Assistant[]> {
  return useResource(async () => {
    const rank = (one: Assistant) => (one.metadata["created_by"] === "system" ? 0 : 1);
    return (await listAssistants()).toSorted(
      (a, b) => rank(a) - rank(b) || a.graph_id.localeCompare(b.graph_id),
    );
  }, []);
}

export const useAssistants = (): readonly Assistant[] => useAssistantList().value ?? [];

export const assistantLabel = ({ name, graph_id, metadata, assistant_id }: Assistant): string =>
  metadata["created_by"] === "system"
    ? graph_id
    : `${withoutDirectionControls(name)} (${graph_id}, …${assistant_id.slice(-4)})`;
