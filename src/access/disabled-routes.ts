/** Groups of routes that a configuration can disable: `http.disable_*`. */
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

const UI: ReadonlySet<string> = new Set(["", "dashboard", "ui"]);

/** The route group of a path. Health checks belong to no group: they are always served. */
export function routeGroupOf(path: string): RouteGroup | undefined {
  const [, first = "", , third] = path.split("/", 4);
  // Events of a machine count as runs, because each event starts a run.
  if (first === "threads") return third === "runs" || third === "events" ? "runs" : "threads";
  if (META.has(first)) return "meta";
  if (UI.has(first)) return "ui";
  return ROUTE_GROUPS.find((group) => group === first);
}
