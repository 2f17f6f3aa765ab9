import { Client } from "@langchain/langgraph-sdk";
import { onTestFinished } from "vitest";
import { WebSocket } from "ws";

export const transports = ["sse", "websocket"] as const;
export type ProtocolTransport = (typeof transports)[number];

/**
 * The official client of a thread over one of its transports. It is closed when the test ends. `token`: what a browser sends with a
 * WebSocket, as it can set no headers.
 */
export function streamOf(
  url: string,
  transport: ProtocolTransport,
  assistantId: string,
  threadId: string = crypto.randomUUID(),
  client: Pick<Client, "threads" | "runs"> = new Client({ apiUrl: url, apiKey: null }),
  token?: string,
) {
  // Node has no WebSocket of its own before version 22.
  const webSocketFactory = (to: string) => {
    const address = new URL(to);
    if (token !== undefined) address.searchParams.set("token", token);
    return new WebSocket(address) as unknown as globalThis.WebSocket;
  };
  const thread = client.threads.stream(threadId, { assistantId, transport, webSocketFactory });
  onTestFinished(() => thread.close());
  return { client, thread, threadId };
}

/** Collects all items until the source pauses or ends. */
export async function all<T>(from: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const one of from) found.push(one);
  return found;
}
