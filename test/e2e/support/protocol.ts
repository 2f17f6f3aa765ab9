import { Client } from "@langchain/langgraph-sdk";
import { onTestFinished } from "vitest";
import { WebSocket } from "ws";

export const transports = ["sse", "websocket"] as const;
export type ProtocolTransport = (typeof transports)[number];

/** The official client of a thread over one of its transports. It is closed when the test ends. */
export function streamOf(
  url: string,
  transport: ProtocolTransport,
  assistantId: string,
  threadId: string = crypto.randomUUID(),
  client: Pick<Client, "threads" | "runs"> = new Client({ apiUrl: url, apiKey: null }),
) {
  // Node has no WebSocket of its own before version 22.
  const webSocketFactory = (to: string) => new WebSocket(to) as unknown as globalThis.WebSocket;
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
