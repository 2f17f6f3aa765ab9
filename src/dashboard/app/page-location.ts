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
  // If people delete the last id in the address of a run, `threads/{id}/runs/{id}`, the remaining address opens the tab
  // `threads/{id}?tab=runs`.
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

/** A form with unsaved input, which is asked before another page replaces it. */
interface LeaveGuard {
  /** Returns whether the page stays for now, although the browser already shows the address with this hash. */
  isKept(hash: string): boolean;
  /** Asks the user whether to leave. `leave` goes to the new address. */
  ask(leave: () => void): void;
}

/** The guards of all forms with unsaved input that are shown. */
const guards = new Set<LeaveGuard>();

/** Returns the guard that keeps the page from being left for `hash`; undefined if there is none. */
const guardAgainst = (hash: string): LeaveGuard | undefined =>
  [...guards].findLast((one) => one.isKept(hash));

/**
 * Asks `guard` whenever the user goes back or forward in the browser's history, or enters another address. Returns a
 * function that stops this. {@link goTo} does not ask.
 */
export function guardAgainstLeaving(guard: LeaveGuard): () => void {
  guards.add(guard);
  return () => guards.delete(guard);
}

/**
 * The place of the current entry in the browser's history, counted from the entry with which the dashboard was opened.
 * It is stored in each entry's state, because nothing else tells whether the user has gone back or forward.
 */
let position = positionOf(history.state) ?? 0;
history.replaceState({ position }, "");

function positionOf(state: unknown): number | undefined {
  const found =
    typeof state === "object" && state !== null && "position" in state ? state.position : undefined;
  return typeof found === "number" ? found : undefined;
}

/**
 * Makes the address that the browser shows the current location. If it is a new entry of the browser's history, stores
 * a position in it.
 */
function acceptLocation(): void {
  const known = positionOf(history.state);
  position = known ?? position + 1;
  if (known === undefined) history.replaceState({ position }, "");
  updateLocation();
}

/** Whether the user has agreed to lose unsaved input, and the browser is about to change the address. */
let isLeaving = false;

addEventListener("hashchange", () => {
  const { hash } = location;
  // This event was caused by `goTo`, or by the return to the kept page below.
  if (hash === currentLocation.peek().hash) return acceptLocation();
  const guard = isLeaving ? undefined : guardAgainst(hash);
  isLeaving = false;
  if (guard === undefined) return acceptLocation();
  const known = positionOf(history.state);
  // An address that the user has typed is a new entry in the history, one after the entry of the page.
  history.go(known === undefined ? -1 : position - known);
  guard.ask(() => {
    if (known === undefined) return goTo(hash);
    isLeaving = true;
    history.go(known - position);
  });
});

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

/** Whether the user has agreed to lose all unsaved input of this page, which is about to be reloaded. */
let isDiscarded = false;

/** Returns whether the browser should ask before the page is closed or reloaded, if there is unsaved input. */
export const isUnsavedInputKept = (): boolean => !isDiscarded;

/** Returns whether a form with unsaved input is shown. */
export const hasUnsavedInput = (): boolean => guards.size > 0;

/** Reloads the page without asking whether unsaved input may be lost. */
export function reloadPage(): void {
  isDiscarded = true;
  location.reload();
}

/** Goes to another page as a link does: a form with unsaved input asks first. */
export function followLink(path: readonly string[]): void {
  const hash = hrefOf(path);
  const guard = guardAgainst(hash);
  if (guard === undefined) goTo(hash);
  else guard.ask(() => goTo(hash));
}

/** Goes to another page without asking whether unsaved input may be lost. */
export function goTo(hash: string): void {
  location.hash = hash;
  acceptLocation();
}

export const navigate = (path: readonly string[], query: LinkQuery = {}): void => goTo(hrefOf(path, query));

/**
 * Changes members of the query in the address, without a new entry in the browser's history. Does nothing if the
 * address already has another hash, because the user has just left the page.
 */
export function replaceQuery(change: LinkQuery): void {
  const { hash, path, query } = currentLocation.peek();
  if (location.hash === hash) {
    history.replaceState(history.state, "", hrefOf(path, { ...Object.fromEntries(query), ...change }));
  }
  updateLocation();
}

/** Returns the address of a thread's page, or of one of its tabs. */
export const threadHref = (id: string, tab?: string): string => hrefOf(["threads", id], { tab });
export const runHref = (thread: string, run: string, query: LinkQuery = {}): string =>
  hrefOf(["threads", thread, "runs", run], query);
