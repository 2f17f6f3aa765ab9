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

/**
 * The parts of a path below `/threads/ID/` whose routes belong to the group `runs`. Events of a machine and commands of the thread protocol
 * start runs. A stream shows the events of runs, and a WebSocket at its path accepts commands too.
 */
const RUNS: ReadonlySet<string | undefined> = new Set(["runs", "events", "commands", "stream"]);

const UI: ReadonlySet<string> = new Set(["", "dashboard", "ui"]);

/** The route group of a path. Health checks belong to no group: they are always served. */
export function routeGroupOf(path: string): RouteGroup | undefined {
  const [, first = "", , third] = path.split("/", 4);
  if (first === "threads") return RUNS.has(third) ? "runs" : "threads";
  if (META.has(first)) return "meta";
  if (UI.has(first)) return "ui";
  return ROUTE_GROUPS.find((group) => group === first);
}
