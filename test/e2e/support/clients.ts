import { Client as Line1 } from "@langchain/langgraph-sdk";
import { Client as Line2 } from "langgraph-sdk-2";

/** Both lines of the official SDK. What a test calls, both of them have, with the same types. */
export type Client = Line1;

/** They answer a failure as they get it, instead of trying again for seconds. */
const once = { callerOptions: { maxRetries: 0 } };

export const lines: readonly (readonly [name: string, connect: (url: string) => Client])[] = [
  ["SDK 1.15", (apiUrl) => new Line1({ apiUrl, ...once })],
  ["SDK 2.0", (apiUrl) => new Line2({ apiUrl, ...once }) as unknown as Client],
];
