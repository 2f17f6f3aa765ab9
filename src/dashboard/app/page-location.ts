import { signal } from "@preact/signals";

/** The current location, such as `#/threads/{id}/runs/{id}?step=2`. */
export interface PageLocation {
  /** The hash from which this location was parsed. The browser's own hash may be newer, because `hashchange` fires in a later turn. */
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
  // People shorten the address of a run, `threads/{id}/runs/{id}`, to that of a tab, which is `threads/{id}?tab=runs`.
  if (place === "threads" && id !== undefined && tab !== undefined && more.length === 0) {
    params.set("tab", tab);
    return { hash, path: [place, id], query: params };
  }
  return { hash, path: parts, query: params };
}

/** Returns the text unchanged if it is not valid percent-encoding: people edit addresses. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Checks whether a text can be the id of a thread or a run. An address may contain anything. */
export const isUuid = (text: string): boolean => UUID.test(text);

export const currentLocation = signal<PageLocation>(parse(location.hash));

function updateLocation(): void {
  if (location.hash !== currentLocation.peek().hash) currentLocation.value = parse(location.hash);
}
addEventListener("hashchange", updateLocation);

export type LinkQuery = { readonly [name: string]: string | number | null | undefined };

/** Returns an address within this page. */
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
 * Changes only the query of the address, without an entry in the browser's history. Does nothing if the user has just
 * left the page.
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
