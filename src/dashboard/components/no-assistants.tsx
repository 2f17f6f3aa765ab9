import { getDashboardSettings } from "../api/client.ts";
import { EmptyState } from "./empty-state.tsx";
import { useResource } from "./use-resource.ts";

/** Explains why the server lists no assistants. */
export function NoAssistants() {
  const { value: settings } = useResource(getDashboardSettings, []);
  if (settings === undefined) return null;
  if (!settings.has_users)
    return (
      <EmptyState title="No graphs">
        <p class="dim">Add graphs to the configuration of the server, under "graphs".</p>
      </EmptyState>
    );
  return (
    <EmptyState title="You have no access to any assistant">
      <p class="dim">
        Each graph has a default assistant without an owner. Access rules for <code>assistants:read</code> and{" "}
        <code>assistants:search</code> can let you see it.
      </p>
      <a href="docs#guide/authentication">Open guide</a>
    </EmptyState>
  );
}
