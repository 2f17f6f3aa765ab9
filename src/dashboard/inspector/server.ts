import { openSocket, fetchJson } from "../server.ts";

export interface About {
  readonly viewer: string;
  readonly values: boolean;
}

export const about = (): Promise<About> => fetchJson("inspect/machines");

export interface Live {
  readonly id: string;
  readonly value: unknown;
  readonly runs: number;
}

export async function live(): Promise<readonly Live[]> {
  return (await fetchJson<{ readonly actors: readonly Live[] }>("inspect/actors?limit=100")).actors;
}

/** Opens the WebSocket of the feed. */
export const connect = (query: URLSearchParams): Promise<WebSocket> => openSocket("inspect", query);
