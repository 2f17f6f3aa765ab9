import { parseUrl } from "../model/url.ts";
import type { JsonObject } from "../model/json.ts";

/** The settings of the inspector: what it shows, and to which other page it can forward its events. */
export interface InspectConfig {
  /** Whether clients that ask for the state values of graphs (`/inspect?values=1`) get them. Default: false. */
  readonly values?: boolean;
  /** The URL of the page to which `/inspector` forwards its events at the user's request. Default: Stately's inspector. */
  readonly viewer?: string;
}

export const DEFAULT_VIEWER = "https://stately.ai/inspect";

/** Reads the section `inspect`. If a key is invalid, calls `refuse` with the key and what is wrong. */
export function parseInspectConfig(section: JsonObject, refuse: (what: string) => never): InspectConfig {
  const { values = false, viewer = DEFAULT_VIEWER } = section;
  if (typeof values !== "boolean") return refuse("inspect.values must be true or false");
  if (typeof viewer !== "string" || !isPage(viewer))
    return refuse("inspect.viewer must be a http(s) address");
  return { values, viewer };
}

function isPage(text: string): boolean {
  return ["http:", "https:"].includes(parseUrl(text)?.protocol ?? "");
}
