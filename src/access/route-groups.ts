/** Parts of the interface that a configuration can leave out: the `disable_*` of `http`. */
export const GROUPS = [
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
export type Group = (typeof GROUPS)[number];

const META: ReadonlySet<string> = new Set([
  "info",
  "metrics",
  "docs",
  "openapi.json",
  "inspect",
  "inspector",
]);

/** The dashboard, and what it is made of. */
const UI: ReadonlySet<string> = new Set(["", "dashboard", "ui"]);

/** The part that a path belongs to. Health belongs to none: it is always told. */
export function groupOf(path: string): Group | undefined {
  const [, first = "", , third] = path.split("/", 4);
  if (first === "threads") return third === "runs" ? "runs" : "threads";
  if (META.has(first)) return "meta";
  if (UI.has(first)) return "ui";
  return GROUPS.find((group) => group === first);
}
