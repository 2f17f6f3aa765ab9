/** Requests to the server that serves this page. Addresses are relative, because a prefix may precede all paths. */

/** The name of the API key in the session storage. */
const KEY = "heddle.key";

export class ApiKeyRequired extends Error {}

/** An error response of the server, with its reason. */
export class RequestError extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

const keyOf = (): string | null => sessionStorage.getItem(KEY);

export const storeApiKey = (key: string): void => sessionStorage.setItem(KEY, key);

export interface RequestInput {
  readonly method?: string;
  readonly body?: unknown;
  readonly signal?: AbortSignal;
}

/** Sends a request. @throws ApiKeyRequired, RequestError */
export async function sendRequest(
  path: string,
  { method, body, signal }: RequestInput = {},
): Promise<Response> {
  const key = keyOf();
  const response = await fetch(path, {
    method: method ?? (body === undefined ? "GET" : "POST"),
    headers: {
      accept: "application/json",
      ...(key !== null && { "x-api-key": key }),
      ...(body !== undefined && { "content-type": "application/json" }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    ...(signal !== undefined && { signal }),
  });
  if (response.status === 401) {
    sessionStorage.removeItem(KEY);
    throw new ApiKeyRequired("A key is needed.");
  }
  if (!response.ok) {
    const { detail } = (await response.json().catch(() => ({}))) as { readonly detail?: string };
    throw new RequestError(response.status, detail ?? `${response.status} ${response.statusText}`);
  }
  return response;
}

export async function fetchJson<T>(path: string, asking?: RequestInput): Promise<T> {
  return (await sendRequest(path, asking)).json() as Promise<T>;
}

/** Opens a WebSocket. Browsers cannot send a header with it, so the query carries a short-lived token. */
export async function openSocket(path: string, query: URLSearchParams): Promise<WebSocket> {
  const asked = new URLSearchParams(query);
  if (keyOf() !== null) {
    const { token } = await fetchJson<{ readonly token: string }>("auth/token", { method: "POST" });
    asked.set("token", token);
  }
  const address = new URL(`${path}?${asked}`, location.href);
  address.hash = "";
  address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
  return new WebSocket(address);
}
