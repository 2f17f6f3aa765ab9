import { signal } from "@preact/signals";

/** The current location, such as `#/threads/{id}/runs/{id}?step=2`. */
export interface Route {
  /**
   * The hash that this route was parsed from. The browser's may be newer, because `hashchange` fires in a later turn.
   */
  readonly hash: string;
  readonly path: readonly string[];
  readonly query: URLSearchParams;
}

function parse(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const parts = path.split("/").filter((part) => part !== "");
  return { hash, path: parts.map(decoded), query: new URLSearchParams(query) };
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
export const isId = (text: string): boolean => UUID.test(text);

export const route = signal<Route>(parse(location.hash));

function arrive(): void {
  if (location.hash !== route.peek().hash) route.value = parse(location.hash);
}
addEventListener("hashchange", arrive);

export type Query = { readonly [name: string]: string | number | null | undefined };

/** Returns an address within this page. */
export function to(path: readonly string[], query: Query = {}): string {
  const given = Object.entries(query).filter(
    ([, value]) => value !== null && value !== undefined && value !== "",
  );
  const params = new URLSearchParams(given.map(([name, value]) => [name, String(value)]));
  const text = params.toString();
  return `#/${path.map((part) => encodeURIComponent(part)).join("/")}${text === "" ? "" : `?${text}`}`;
}

export function go(path: readonly string[], query: Query = {}): void {
  location.hash = to(path, query);
  arrive();
}

/**
 * Changes the query alone, without an entry in the browser's history. Does nothing if the user has just left the page.
 */
export function refine(change: Query): void {
  const { hash, path, query } = route.peek();
  if (location.hash === hash) {
    history.replaceState(null, "", to(path, { ...Object.fromEntries(query), ...change }));
  }
  arrive();
}

/** Returns the address of a thread's page, or of one of its tabs. */
export const toThread = (id: string, tab?: string): string => to(["threads", id], { tab });
export const toRun = (thread: string, run: string, query: Query = {}): string =>
  to(["threads", thread, "runs", run], query);
