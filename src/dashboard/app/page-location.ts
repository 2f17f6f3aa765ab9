import { signal } from "@preact/signals";

/**
 * The location within the dashboard, parsed from the hash of the address, such as `#/threads/{id}/runs/{id}?step=2`.
 */
export interface PageLocation {
  /**
   * The hash from which this location was parsed. `location.hash` may be newer, because `hashchange` fires in a later
   * task.
   */
  readonly hash: string;
  readonly path: readonly string[];
  readonly query: URLSearchParams;
}

function parse(hash: string): PageLocation {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const parts = path
    .split("/")
    .filter((part) => part !== "")
    .map(decoded);
  const params = new URLSearchParams(query);
  const [place, id, tab, ...more] = parts;
  // If people delete the last id in the address of a run, `threads/{id}/runs/{id}`, the tab `threads/{id}?tab=runs` is
  // opened.
  if (place === "threads" && id !== undefined && tab !== undefined && more.length === 0) {
    params.set("tab", tab);
    return { hash, path: [place, id], query: params };
  }
  return { hash, path: parts, query: params };
}

/**
 * Decodes a part of the path. Returns it unchanged if it is not valid percent-encoding, because people edit addresses.
 */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Returns whether a text from an address has the form of the id of a thread or a run. */
export const isUuid = (text: string): boolean => UUID.test(text);

export const currentLocation = signal<PageLocation>(parse(location.hash));

function updateLocation(): void {
  if (location.hash !== currentLocation.peek().hash) currentLocation.value = parse(location.hash);
}
addEventListener("hashchange", updateLocation);

export type LinkQuery = { readonly [name: string]: string | number | null | undefined };

/** Returns the hash of a location in the dashboard. Empty, null and undefined members of the query are left out. */
export function hrefOf(path: readonly string[], query: LinkQuery = {}): string {
  const given = Object.entries(query).filter(
    ([, value]) => value !== null && value !== undefined && value !== "",
  );
  const params = new URLSearchParams(given.map(([name, value]) => [name, String(value)]));
  const text = params.toString();
  return `#/${path.map((part) => encodeURIComponent(part)).join("/")}${text === "" ? "" : `?${text}`}`;
}

export function navigate(path: readonly string[], query: LinkQuery = {}): void {
  location.hash = hrefOf(path, query);
  updateLocation();
}

/**
 * Changes members of the query in the address, without a new entry in the browser's history. Does nothing if the
 * address already has another hash, because the user has just left the page.
 */
export function replaceQuery(change: LinkQuery): void {
  const { hash, path, query } = currentLocation.peek();
  if (location.hash === hash) {
    history.replaceState(null, "", hrefOf(path, { ...Object.fromEntries(query), ...change }));
  }
  updateLocation();
}

/** Returns the address of a thread's page, or of one of its tabs. */
export const threadHref = (id: string, tab?: string): string => hrefOf(["threads", id], { tab });
export const runHref = (thread: string, run: string, query: LinkQuery = {}): string =>
  hrefOf(["threads", thread, "runs", run], query);
