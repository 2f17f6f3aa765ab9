import { getDashboardSettings } from "../api/client.ts";
import { EmptyState } from "./empty-state.tsx";
import { useResource } from "./use-resource.ts";

/** Says why the server lists no assistant. */
export function NoAssistants() {
  const { value: settings } = useResource(getDashboardSettings, []);
  if (settings === undefined) return null;
  if (!settings.has_users)
    return (
      <EmptyState title="The server has no graphs.">
        <p class="dim">They are named in its configuration, under "graphs".</p>
      </EmptyState>
    );
  return (
    <EmptyState title="The rules of this server show you no assistant.">
      <p class="dim">
        Each graph has a default assistant, without an owner: rules for <code>assistants:read</code> and{" "}
        <code>assistants:search</code> can let you see it.
      </p>
      <a href="docs#guide/authentication">To the guide</a>
    </EmptyState>
  );
}
