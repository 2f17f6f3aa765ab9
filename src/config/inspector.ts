import type { JsonObject } from "../model/json.ts";

/** What people may see of live actors, and where. */
export interface InspectConfig {
  /** May the states of graphs be shown to who asks for them (`/inspect?values=1`)? Default: no. */
  readonly values?: boolean;
  /** The page that `/inspector` hands over to, when somebody tells it to. Default: Stately's. */
  readonly viewer?: string;
}

export const VIEWER = "https://stately.ai/inspect";

/** Reads the section `inspect`. `refuse` is told which key is wrong, and how. */
export function readInspect(section: JsonObject, refuse: (what: string) => never): InspectConfig {
  const { values = false, viewer = VIEWER } = section;
  if (typeof values !== "boolean") return refuse("inspect.values must be true or false");
  if (typeof viewer !== "string" || !isPage(viewer))
    return refuse("inspect.viewer must be a http(s) address");
  return { values, viewer };
}

function isPage(text: string): boolean {
  return URL.canParse(text) && ["http:", "https:"].includes(new URL(text).protocol);
}
