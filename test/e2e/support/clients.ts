import { Client as Line1 } from "@langchain/langgraph-sdk";
import { Client as Line2 } from "langgraph-sdk-2";

/** Both lines of the official SDK. What a test calls, both of them have, with the same types. */
export type Client = Line1;

/** They answer a failure as they get it, instead of trying again for seconds. */
const once = { callerOptions: { maxRetries: 0 } };

export const lines: readonly (readonly [name: string, connect: (url: string, key?: string) => Client])[] = [
  ["SDK 1.15", (apiUrl, key) => new Line1({ apiUrl, apiKey: key ?? null, ...once })],
  ["SDK 2.0", (apiUrl, key) => new Line2({ apiUrl, apiKey: key ?? null, ...once }) as unknown as Client],
];
