import { Client as Line1 } from "@langchain/langgraph-sdk";
import { Client as Line2 } from "langgraph-sdk-2";

/** The client of both major versions of the official SDK. The calls that tests make have the same types in both. */
export type Client = Line1;

/** No retries: a failure is returned at once instead of after seconds. */
const once = { callerOptions: { maxRetries: 0 } };

export const lines: readonly (readonly [name: string, connect: (url: string, key?: string) => Client])[] = [
  ["SDK 1.15", (apiUrl, key) => new Line1({ apiUrl, apiKey: key ?? null, ...once })],
  ["SDK 2.0", (apiUrl, key) => new Line2({ apiUrl, apiKey: key ?? null, ...once }) as unknown as Client],
];
