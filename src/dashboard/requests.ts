import { signal } from "@preact/signals";
import { ApiKeyRequired, RequestError } from "./api-errors.ts";

/** Requests to the server that serves this page. Addresses are relative, because a prefix may precede all paths. */

/** The key in the session storage under which the API key or the user's token is stored. */
const KEY = "heddle.key";

/**
 * Milliseconds after which a read without an answer fails. A connection may be dead without a sign, for example after
 * the computer was suspended.
 */
const READ_TIMEOUT_MS = 60_000;

/** The number of answers that the server has given. */
export const answerCount = signal(0);

/**
 * Whether the server refuses a key that it has accepted on this page before. Requests then wait until the user enters
 * another key, so that the page keeps what the user has typed.
 */
export const isKeyExpired = signal(false);

/** Whether the server has accepted the stored key since the page was loaded. */
let isAccepted = false;
/** Whether a request with an expired key waits for another key; otherwise it fails. */
let waitsForNewKey = false;
/** For each request that waits for another key, the function that sends it. */
const waitingRequests = new Set<() => void>();

/** Makes requests wait while {@link isKeyExpired}. Called by pages that then ask for another key. */
export function holdRequestsOfExpiredKey(): void {
  waitsForNewKey = true;
}

/** Resolves when the user has entered another key. Rejects with the reason of the signal if it is aborted before. */
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

/** Returns the API key or token that the user has given in this tab; null: none. */
export const storedApiKey = (): string | null => sessionStorage.getItem(KEY);

/** Stores a key that the server has accepted, and lets the requests go on that wait for one. */
export function storeApiKey(key: string): void {
  sessionStorage.setItem(KEY, key);
  isKeyExpired.value = false;
  for (const resume of waitingRequests) resume();
}

/** Loads the page anew with the key of another user. Nothing of the user before is sent or shown with it. */
export function startOverWithKey(key: string): void {
  sessionStorage.setItem(KEY, key);
  location.reload();
}

export const forgetApiKey = (): void => sessionStorage.removeItem(KEY);

export interface RequestInput {
  readonly method?: string;
  readonly body?: unknown;
  /** True for a POST that changes nothing. Like each GET, it fails if it takes too long. */
  readonly isRead?: boolean;
  readonly signal?: AbortSignal | undefined;
  /** A key that is tried without being stored. Default: the stored one. */
  readonly key?: string;
}

/** Sends a request. @throws ApiKeyRequired, RequestError */
export async function sendRequest(path: string, input: RequestInput = {}): Promise<Response> {
  const { method, body, isRead = method === undefined && body === undefined, signal } = input;
  if (input.key === undefined && isKeyExpired.peek()) await untilKeyIsEntered(signal);
  const key = input.key ?? storedApiKey();
  const signals = [
    ...(signal === undefined ? [] : [signal]),
    ...(isRead ? [AbortSignal.timeout(READ_TIMEOUT_MS)] : []),
  ];
  const response = await fetch(path, {
    method: method ?? (body === undefined ? "GET" : "POST"),
    headers: {
      accept: "application/json",
      // Projects with an authentication of their own may read either header.
      ...(key !== null && { "x-api-key": key, authorization: `Bearer ${key}` }),
      ...(body !== undefined && { "content-type": "application/json" }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    signal: AbortSignal.any(signals),
  });
  answerCount.value++;
  if (response.status === 401) {
    if (input.key !== undefined) throw new ApiKeyRequired("The API key or user token is not valid.");
    // If the user has entered another key in the meantime, the request is repeated with that key.
    if (storedApiKey() !== key && storedApiKey() !== null) return sendRequest(path, input);
    forgetApiKey();
    if (!waitsForNewKey || !isAccepted) throw new ApiKeyRequired("An API key or user token is required.");
    isKeyExpired.value = true;
    return sendRequest(path, input);
  }
  if (key !== null && input.key === undefined) isAccepted = true;
  if (!response.ok) {
    const { detail, code } = (await response.json().catch(() => ({}))) as {
      readonly detail?: string;
      readonly code?: string;
    };
    throw new RequestError(response.status, detail ?? `${response.status} ${response.statusText}`, code);
  }
  return response;
}

export async function fetchJson<T>(path: string, asking?: RequestInput): Promise<T> {
  return (await sendRequest(path, asking)).json() as Promise<T>;
}

/** Opens a WebSocket. Browsers cannot send a header with it, so the query carries a short-lived token. */
export async function openSocket(path: string, query: URLSearchParams): Promise<WebSocket> {
  const asked = new URLSearchParams(query);
  if (storedApiKey() !== null || isKeyExpired.peek()) {
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
  socket.addEventListener("open", () => answerCount.value++);
  return socket;
}
