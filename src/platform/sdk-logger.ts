import { isObject } from "../model/json.ts";
import type { LogFields, Logger, LogLevel } from "../ports/logger.ts";

/**
 * The global key under which `getLogger()` of `@langchain/langgraph-sdk/logging` finds its logger, the same in every version of the
 * package.
 */
const SDK_LOGGER = Symbol.for("langgraph.api.sdk-logger");

/** The methods of the SDK's logger, with the level at which each logs. */
const LEVELS = {
  error: "error",
  warn: "warn",
  help: "info",
  data: "info",
  info: "info",
  prompt: "info",
  input: "info",
  http: "debug",
  verbose: "debug",
  debug: "debug",
  silly: "debug",
} as const satisfies { readonly [method: string]: LogLevel };

interface Server {
  readonly logger: Logger;
}

/** The key, in an {@link SdkLogger}, of the servers of this process. The first server in the list gets the lines that the SDK logs. */
const SERVERS = Symbol("heddle.loggers");

type SdkLogger = {
  -readonly [method in keyof typeof LEVELS]: (...given: readonly unknown[]) => SdkLogger;
} & {
  readonly [SERVERS]: Server[];
};

/**
 * Makes `getLogger()` of the official SDK log to `logger`. Without a registered logger, a graph file that calls `getLogger()` does not
 * load. If the process has several servers, all lines go to the logger that was registered first. Returns a function that unregisters
 * `logger`.
 */
export function registerSdkLogger(logger: Logger): () => void {
  const holder = globalThis as { [SDK_LOGGER]?: SdkLogger };
  const made = (holder[SDK_LOGGER] ??= createSdkLogger());
  const servers = made[SERVERS] as Server[] | undefined;
  // Other code has set its own logger, which is kept.
  if (servers === undefined) return () => undefined;
  const own: Server = { logger };
  servers.push(own);
  return () => {
    const at = servers.indexOf(own);
    if (at >= 0) servers.splice(at, 1);
    if (servers.length === 0 && holder[SDK_LOGGER] === made) delete holder[SDK_LOGGER];
  };
}

function createSdkLogger(): SdkLogger {
  const servers: Server[] = [];
  const made = { [SERVERS]: servers } as SdkLogger;
  for (const [method, level] of Object.entries(LEVELS)) {
    made[method as keyof typeof LEVELS] = (...given: readonly unknown[]) => {
      try {
        const { message, fields } = lineOf(given);
        servers[0]?.logger[level](message, { ...fields, ...placeOf() });
      } catch {
        // A value that cannot be printed must not fail a run.
      }
      return made;
    };
  }
  return made;
}

/**
 * The log line of a call of the SDK's logger. The call has a message and metadata, or one object that contains both. Metadata that is not
 * an object is put into `data`.
 */
function lineOf([first, ...rest]: readonly unknown[]): {
  readonly message: string;
  readonly fields: LogFields;
} {
  const fields: { [name: string]: unknown } = {};
  const data: unknown[] = [];
  for (const one of rest) {
    if (one instanceof Error) fields["error"] = one;
    else if (isObject(one)) Object.assign(fields, one);
    else data.push(one);
  }
  if (data.length > 0) fields["data"] = data.length === 1 ? data[0] : data;
  if (first instanceof Error) return { message: first.message, fields: { error: first, ...fields } };
  if (!isObject(first)) return { message: String(first), fields };
  const { message, ...own } = first;
  return { message: message === undefined ? "" : String(message), fields: { ...own, ...fields } };
}

/**
 * Where LangChain.js stores the configuration of the runnable that is running: `STORAGE` is the global key of an AsyncLocalStorage, and
 * `CONFIG` is the key in the `extra` of its store.
 */
const STORAGE = Symbol.for("ls:tracing_async_local_storage");
const CONFIG = Symbol.for("lc:child_config");

interface Storage {
  getStore?(): { readonly extra?: { readonly [CONFIG]?: unknown } } | undefined;
}

/** Fields that name the LangGraph.js node that logs, its run and its thread. Empty outside a node. */
function placeOf(): LogFields {
  const storage = (globalThis as { readonly [STORAGE]?: Storage })[STORAGE];
  const config = storage?.getStore?.()?.extra?.[CONFIG];
  if (!isObject(config)) return {};
  const { metadata, configurable } = config;
  const node = isObject(metadata) ? metadata["langgraph_node"] : undefined;
  const { run_id, thread_id } = isObject(configurable) ? configurable : {};
  return {
    ...(typeof run_id === "string" && { run_id }),
    ...(typeof thread_id === "string" && { thread_id }),
    ...(typeof node === "string" && { node }),
  };
}
