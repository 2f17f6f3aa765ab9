import { openSocket, fetchJson } from "../requests.ts";

export interface ViewerInfo {
  readonly viewer: string;
  readonly values: boolean;
}

export const getViewerInfo = (): Promise<ViewerInfo> => fetchJson("inspect/machines");

export interface LiveThreadRow {
  readonly id: string;
  readonly value: unknown;
  readonly runs: number;
}

export async function listLiveThreads(): Promise<readonly LiveThreadRow[]> {
  return (await fetchJson<{ readonly actors: readonly LiveThreadRow[] }>("inspect/actors?limit=100")).actors;
}

/** Opens the WebSocket of the inspector's feed, which reports the events and snapshots of actors. */
export const openFeed = (query: URLSearchParams): Promise<WebSocket> => openSocket("inspect", query);
