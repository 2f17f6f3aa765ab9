/** Groups of routes that a configuration can disable, with `http.disable_assistants` and so on. */
export const ROUTE_GROUPS = [
  "assistants",
  "threads",
  "runs",
  "store",
  "meta",
  "ui",
  "mcp",
  "a2a",
  "webhooks",
] as const;
export type RouteGroup = (typeof ROUTE_GROUPS)[number];

const META: ReadonlySet<string> = new Set([
  "info",
  "metrics",
  "docs",
  "openapi.json",
  "inspect",
  "inspector",
]);

/**
 * The path segments after `/threads/ID/` whose routes belong to the group `runs`: `events` and `commands` start runs, and `stream` shows
 * the events of runs; a WebSocket at `stream` also accepts commands.
 */
const RUNS: ReadonlySet<string | undefined> = new Set(["runs", "events", "commands", "stream"]);

const UI: ReadonlySet<string> = new Set(["", "dashboard", "ui"]);

/** The route group of a path. Undefined for a path that cannot be disabled, such as a health check. */
export function routeGroupOf(path: string): RouteGroup | undefined {
  const [, first = "", , third] = path.split("/", 4);
  if (first === "threads") return RUNS.has(third) ? "runs" : "threads";
  if (META.has(first)) return "meta";
  if (UI.has(first)) return "ui";
  return ROUTE_GROUPS.find((group) => group === first);
}
