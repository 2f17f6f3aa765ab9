import { signal } from "@preact/signals";
import { ApiKeyRequired, RequestError, type RequestFieldError } from "./api-errors.ts";
import { answerNewTabs, noteKey, requestKeyOfOtherTab } from "./api-key-sharing.ts";
import { StoredText } from "./stored-text.ts";

/** Requests to the server of this page. URLs are relative, because the server may run below a path prefix. */

/** The API key or the user's token that was entered in this tab, or that another tab has given to it. */
const storedKey = new StoredText("heddle.key", { keptFor: "tab" });

/**
 * Milliseconds after which a read fails if the server has not responded. A connection can be dead without the browser
 * noticing, for example after the computer was suspended.
 */
const READ_TIMEOUT_MS = 60_000;

/** The number of responses and opened sockets so far. A change shows that the server can be reached. */
export const responseCount = signal(0);

/**
 * Whether the server no longer accepts a key that it accepted earlier. Requests then wait until the user enters another
 * key, instead of failing, so that the page keeps its input.
 */
export const isKeyExpired = signal(false);

/** Whether the server has accepted the stored key since the page was loaded. */
let isAccepted = false;
/** If true, requests whose key has expired wait for another key. If false, they fail. */
let waitsForNewKey = false;
/** For each waiting request, the function that lets it continue. */
const waitingRequests = new Set<() => void>();

/** Makes requests wait while {@link isKeyExpired} is true. Only for pages that then ask the user for another key. */
export function holdRequestsOfExpiredKey(): void {
  waitsForNewKey = true;
}

/** Resolves when the user has entered another key. Rejects with the signal's reason if the signal is aborted first. */
function untilKeyIsEntered(signal: AbortSignal | undefined): Promise<void> {
  signal?.throwIfAborted();
  return new Promise((resolve, reject) => {
    const stop = () => {
      waitingRequests.delete(go);
      signal?.removeEventListener("abort", fail);
    };
    const go = () => {
      stop();
      resolve();
    };
    const fail = () => {
      stop();
      reject(signal?.reason);
    };
    waitingRequests.add(go);
    signal?.addEventListener("abort", fail);
  });
}

/** Returns the API key or user token of this tab; null if there is none. */
export const readApiKey = (): string | null => storedKey.read();

/** Stores a key that the user has entered, and sends the requests that wait for a key. */
export function storeApiKey(key: string): void {
  writeApiKey(key);
  isKeyExpired.value = false;
  for (const resume of waitingRequests) resume();
}

/**
 * Stores a key of another user, to be used after the page has been reloaded. The waiting requests are not sent, because
 * they are those of the previous user.
 */
export function storeApiKeyForReload(key: string): void {
  writeApiKey(key);
}

function writeApiKey(key: string): void {
  // If the storage is full, a reload must not bring back the previous key, which may be that of another user.
  storedKey.remove();
  storedKey.write(key);
  noteKey();
}

/** The key of another tab, once it has been asked for since the page was loaded. */
let keyOfOtherTab: Promise<string | null> | undefined;

/** Asks the other tabs for a key if this tab has none. Resolves with whether this tab then has a key. */
export async function takeKeyOfOtherTab(): Promise<boolean> {
  keyOfOtherTab ??= requestKeyOfOtherTab();
  const shared = await keyOfOtherTab;
  // Meanwhile, the user may have entered a key.
  if (shared !== null && readApiKey() === null) writeApiKey(shared);
  return readApiKey() !== null;
}

export const forgetApiKey = (): void => storedKey.remove();

export interface RequestInput {
  readonly method?: string;
  readonly body?: unknown;
  /**
   * Whether the request changes nothing, so that it may fail after {@link READ_TIMEOUT_MS}. Default: true for a GET.
   */
  readonly isRead?: boolean;
  readonly signal?: AbortSignal | undefined;
  /** A key to use for this request without storing it; default: the stored key. */
  readonly key?: string;
}

/**
 * Sends a request, and waits for a new key if the stored one has expired.
 * @throws ApiKeyRequired if the server requires a valid key, RequestError for any other error response
 */
export async function sendRequest(path: string, input: RequestInput = {}): Promise<Response> {
  const { method, body, isRead = method === undefined && body === undefined, signal } = input;
  if (input.key === undefined && isKeyExpired.peek()) await untilKeyIsEntered(signal);
  const key = input.key ?? readApiKey();
  const signals = [
    ...(signal === undefined ? [] : [signal]),
    ...(isRead ? [AbortSignal.timeout(READ_TIMEOUT_MS)] : []),
  ];
  const response = await fetch(path, {
    method: method ?? (body === undefined ? "GET" : "POST"),
    headers: {
      accept: "application/json",
      // Both headers, because a project with its own authentication may read either.
      ...(key !== null && { "x-api-key": key, authorization: `Bearer ${key}` }),
      ...(body !== undefined && { "content-type": "application/json" }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    signal: AbortSignal.any(signals),
  });
  responseCount.value++;
  if (response.status === 401) {
    if (input.key !== undefined) throw new ApiKeyRequired("The API key or user token is not valid.");
    // If the user has entered another key in the meantime, the request is sent again with that key.
    if (readApiKey() !== key && readApiKey() !== null) return sendRequest(path, input);
    if (key === null && (await takeKeyOfOtherTab())) return sendRequest(path, input);
    forgetApiKey();
    if (!waitsForNewKey || !isAccepted) throw new ApiKeyRequired("An API key or user token is required.");
    isKeyExpired.value = true;
    return sendRequest(path, input);
  }
  if (key !== null && input.key === undefined && !isAccepted) {
    isAccepted = true;
    noteKey();
    answerNewTabs(() => (isKeyExpired.peek() ? null : readApiKey()));
  }
  if (!response.ok) {
    const { detail, code, errors } = (await response.json().catch(() => ({}))) as {
      readonly detail?: string;
      readonly code?: string;
      readonly errors?: readonly RequestFieldError[];
    };
    const message = detail ?? `${response.status} ${response.statusText}`;
    throw new RequestError(response.status, message, code, Array.isArray(errors) ? errors : []);
  }
  return response;
}

export async function fetchJson<T>(path: string, asking?: RequestInput): Promise<T> {
  return (await sendRequest(path, asking)).json() as Promise<T>;
}

/**
 * Opens a WebSocket to the server. Browsers cannot send the key in a header of a WebSocket, so a short-lived token in
 * the query replaces it.
 */
export async function openSocket(path: string, query: URLSearchParams): Promise<WebSocket> {
  const asked = new URLSearchParams(query);
  if (readApiKey() !== null || isKeyExpired.peek()) {
    const { token } = await fetchJson<{ readonly token: string }>("auth/token", {
      method: "POST",
      isRead: true,
    });
    asked.set("token", token);
  }
  const address = new URL(`${path}?${asked}`, location.href);
  address.hash = "";
  address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
  const socket = new WebSocket(address);
  socket.addEventListener("open", () => responseCount.value++);
  return socket;
}
