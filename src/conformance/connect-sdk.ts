import type { Client } from "@langchain/langgraph-sdk";
import { ServiceError } from "../model/errors.ts";
import { systemScheduler } from "../platform/scheduler.ts";
import type { TestedServer } from "./conformance-check.ts";
import { PlainHttpClient } from "./http-client.ts";
import { RecordedFetch } from "./recorded-fetch.ts";

/** The part of LangGraph's JavaScript SDK that the checks use. Both major versions of the SDK have it. */
export interface Sdk {
  readonly Client: typeof Client;
}

export interface RecordedConnection extends TestedServer {
  readonly recorded: RecordedFetch;
}

const SDK_PACKAGE = "@langchain/langgraph-sdk";

/**
 * Loads the installed SDK, which only `heddle conformance` needs.
 * @throws ServiceError `config.invalid` if it is not installed; the message says how to install it
 */
export async function loadSdk(
  load: () => Promise<Sdk> = () => import("@langchain/langgraph-sdk"),
): Promise<Sdk> {
  try {
    return await load();
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== "ERR_MODULE_NOT_FOUND") throw cause;
    throw new ServiceError(
      "config.invalid",
      `The checks go through the official SDK, which is not installed: npm install ${SDK_PACKAGE}, ` +
        `or npx -p heddle -p ${SDK_PACKAGE} heddle conformance --url URL`,
      { cause },
    );
  }
}

/**
 * Creates the clients for a server under test. Their requests are recorded.
 * @param url the server's URL, without a slash at its end
 * @param key the API key; undefined if the server needs none
 */
export function connect(sdk: Sdk, url: string, key?: string): RecordedConnection {
  const recorded = new RecordedFetch(url);
  const client = new sdk.Client({
    apiUrl: url,
    apiKey: key ?? null,
    // No retries, because a failed request is a result to check.
    callerOptions: { maxRetries: 0, fetch: recorded.fetch },
  });
  return {
    client,
    http: new PlainHttpClient(url, key, recorded.fetch),
    pause: (ms) => new Promise((resolve) => void systemScheduler.after(ms, resolve, true)),
    recorded,
  };
}
