/** The server that this page comes from. Addresses are relative: all paths may begin with a prefix. */
const KEY = "heddle.key";

export class KeyNeeded extends Error {}

const keyOf = (): string | null => sessionStorage.getItem(KEY);

export const enter = (key: string): void => sessionStorage.setItem(KEY, key);

async function ask(path: string, method = "GET"): Promise<Response> {
  const key = keyOf();
  const response = await fetch(path, { method, headers: key === null ? {} : { "x-api-key": key } });
  if (response.status === 401) {
    sessionStorage.removeItem(KEY);
    throw new KeyNeeded();
  }
  if (!response.ok) {
    const { detail } = (await response.json().catch(() => ({}))) as { readonly detail?: string };
    throw new Error(detail ?? `${response.status} ${response.statusText}`);
  }
  return response;
}

export interface About {
  readonly viewer: string;
  readonly values: boolean;
}

export async function about(): Promise<About> {
  return (await ask("inspect/machines")).json() as Promise<About>;
}

export interface Live {
  readonly id: string;
  readonly value: unknown;
  readonly runs: number;
}

export async function live(): Promise<readonly Live[]> {
  return ((await (await ask("inspect/actors?limit=100")).json()) as { readonly actors: readonly Live[] })
    .actors;
}

/** The feed's socket. A browser can send no key with it, so it brings a token. */
export async function connect(query: URLSearchParams): Promise<WebSocket> {
  const asked = new URLSearchParams(query);
  if (keyOf() !== null) {
    const { token } = (await (await ask("auth/token", "POST")).json()) as { readonly token: string };
    asked.set("token", token);
  }
  const address = new URL(`inspect?${asked}`, location.href);
  address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
  return new WebSocket(address);
}
