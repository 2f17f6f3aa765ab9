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
  // `threads/{id}/{tab}` opens a tab of the thread. People get such an address by deleting the last id of
  // `threads/{id}/runs/{id}`.
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

/** Returns whether a text is a UUID, as the ids of threads and runs are. */
export const isUuid = (text: string): boolean => UUID.test(text);

export const currentLocation = signal<PageLocation>(parse(location.hash));

function updateLocation(): void {
  if (location.hash !== currentLocation.peek().hash) currentLocation.value = parse(location.hash);
}

/** Protects the unsaved input of a form. */
interface LeaveGuard {
  /** Returns whether going to this hash would lose the input. */
  isKept(hash: string): boolean;
  /** Asks the user whether to lose the input. `leave` goes to the new address. */
  ask(leave: () => void): void;
}

/** The guards of all shown forms with unsaved input. */
const guards = new Set<LeaveGuard>();

/** Returns the newest guard whose input going to `hash` would lose; undefined if there is none. */
const guardAgainst = (hash: string): LeaveGuard | undefined =>
  [...guards].findLast((one) => one.isKept(hash));

/**
 * Asks `guard` before the user leaves through the browser's history, another address or {@link navigateTo}, but not
 * before {@link goToHash}. Returns a function that removes the guard.
 */
export function guardAgainstLeaving(guard: LeaveGuard): () => void {
  guards.add(guard);
  return () => guards.delete(guard);
}

/**
 * The place of the current entry in the browser's history, counted from the entry with which the dashboard was opened.
 * Each entry stores its place, because nothing else tells whether the user has gone back or forward.
 */
let position = positionOf(history.state) ?? 0;
history.replaceState({ position }, "");

function positionOf(state: unknown): number | undefined {
  const found =
    typeof state === "object" && state !== null && "position" in state ? state.position : undefined;
  return typeof found === "number" ? found : undefined;
}

/** Returns a name for the current entry of the browser's history, which it has again when the user goes back to it. */
export const currentHistoryEntry = (): string => `${position} ${currentLocation.peek().hash}`;

/**
 * Sets {@link currentLocation} to the address that the browser shows. If this is a new entry of the browser's history,
 * stores a position in it.
 */
function acceptLocation(): void {
  const known = positionOf(history.state);
  position = known ?? position + 1;
  if (known === undefined) history.replaceState({ position }, "");
  updateLocation();
}

/** True after the user has agreed to lose unsaved input, until the address changes. */
let isLeaving = false;

addEventListener("hashchange", () => {
  const { hash } = location;
  // `goToHash` has changed the address, or `history.go` below has returned to the page that is kept.
  if (hash === currentLocation.peek().hash) return acceptLocation();
  const guard = isLeaving ? undefined : guardAgainst(hash);
  isLeaving = false;
  if (guard === undefined) return acceptLocation();
  const known = positionOf(history.state);
  // A typed address is a new entry in the history, one after the entry of this page.
  history.go(known === undefined ? -1 : position - known);
  guard.ask(() => {
    if (known === undefined) return goToHash(hash);
    isLeaving = true;
    history.go(known - position);
  });
});

/**
 * The largest number of a page of a list. No list has so many pages, and the server would refuse the offset of a later
 * one.
 */
const MAX_PAGE = 1_000_000;

/**
 * Returns the number of a page of a list, from `page` in a query, counted from 0. `first`: the number of the first page
 * in the address. An invalid number means the first page, because people edit addresses.
 */
export function pageNumberOf(query: URLSearchParams, first = 0): number {
  const number = Math.trunc(Number(query.get("page") ?? first)) - first;
  return Number.isNaN(number) ? 0 : Math.max(0, Math.min(MAX_PAGE, number));
}

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

/** True once {@link reloadPage} reloads the page, so that the browser does not ask about unsaved input. */
let isDiscarded = false;

/** Returns whether the browser should ask before the page is closed or reloaded, if there is unsaved input. */
export const isUnloadGuarded = (): boolean => !isDiscarded;

/** Returns whether a form with unsaved input is shown. */
export const hasUnsavedInput = (): boolean => guards.size > 0;

/** Reloads the page without asking whether unsaved input may be lost. */
export function reloadPage(): void {
  isDiscarded = true;
  location.reload();
}

/** Goes to another page as a link does: a form with unsaved input asks first. */
export function navigateTo(path: readonly string[]): void {
  const hash = hrefOf(path);
  const guard = guardAgainst(hash);
  if (guard === undefined) goToHash(hash);
  else guard.ask(() => goToHash(hash));
}

/** Goes to another page without asking whether unsaved input may be lost. */
export function goToHash(hash: string): void {
  location.hash = hash;
  acceptLocation();
}

export const navigate = (path: readonly string[], query: LinkQuery = {}): void =>
  goToHash(hrefOf(path, query));

/**
 * Changes members of the query in the address, without a new entry in the browser's history. If the user has just left
 * the page, the address is not changed.
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
