import type { SystemLimits, ThreadSystem } from "../../actors/thread-system-interface.ts";
import type { HeaderPatterns } from "../access/configurable-headers.ts";
import type { AuthHandlers } from "../access/custom-auth.ts";
import type { Config } from "../config/config.ts";
import { ServiceError } from "../model/errors.ts";
import { similarName } from "../model/similar-name.ts";
import type { GraphDef } from "../graph/graph-builder.ts";
import type { InlineGraph } from "../graph-loader/inline-graph.ts";
import type { PendingWebRequests } from "../http/web-exchange.ts";
import type { DashboardConfig } from "../config/dashboard.ts";
import type { InspectConfig } from "../config/inspector.ts";
import type { BodyMemory } from "../ports/body-memory.ts";
import type { Clock } from "../ports/clock.ts";
import type { Failpoints } from "../ports/failpoints.ts";
import type { HttpApp } from "../ports/http-app.ts";
import type { LibraryGraph } from "../ports/library-graph.ts";
import type { HttpClient } from "../ports/http-client.ts";
import type { Logger, LogLevel } from "../ports/logger.ts";
import type { OnProgress } from "../ports/work-progress.ts";
import type { Random } from "../ports/random.ts";
import type { Scheduler } from "../ports/scheduler.ts";
import type { Handlers, IncomingBody, Transport } from "../ports/transport.ts";
import type { Storage, StorageOptions } from "../storage/open-storage.ts";
import type { StoreOptions } from "../config/store.ts";
import type { StreamSync } from "../stream/attempt-event-writer.ts";
import type { ThreadTtlConfig } from "../config/thread-ttl.ts";
import type { WebhookConfig } from "../config/webhooks.ts";

export interface AppOptions {
  /**
   * The graphs to serve, by name: Heddle's own or LangGraph.js graphs. They replace graphs of the same names from the configuration file.
   */
  readonly graphs?: { readonly [name: string]: InlineGraph };
  /** LangGraph.js graphs to serve, by name, in the form that Heddle's graph loader returns. */
  readonly langGraphs?: ReadonlyMap<string, LibraryGraph>;
  /** The path of a configuration file, or its contents. Its graphs are served too. Its settings apply where these options set nothing. */
  readonly config?: string | Config;
  /** The data directory, or the options of a storage. Absent: data is kept only in memory, and lost when the app closes. */
  readonly data?: string | StorageOptions;
  /**
   * An open storage, instead of `data`. With a list of storages, the server has one shard for each. The app closes the storages when it is
   * closed.
   */
  readonly storage?: Storage | readonly Storage[];
  /** The host or IP address on which to listen. Default: `127.0.0.1`. An address other than loopback needs `keys`, `auth` or `insecure`. */
  readonly host?: string;
  /** The port on which to listen. Default: 0, any free port. */
  readonly port?: number;
  /** Whether to listen on the next free port if `port` is taken. At most 100 further ports are tried. Default: false. */
  readonly takeNextPort?: boolean;
  /**
   * The transport. Default: uWebSockets.js if it has a binary for this platform, else Node's own HTTP server. `none`: the app does not
   * listen; requests come through `createHandler` or `fetch`, and the webhook of a run cannot be a path on this server.
   */
  readonly transport?: Transport["kind"];
  /** The maximum size of a request body, in bytes. Default: 16 MiB. */
  readonly maxBody?: number;
  /**
   * The project's own HTTP application: a function that takes a web `Request`, or an object with a method `fetch`. It gets each request
   * before Heddle's routes do. Replaces `http.app` of the configuration file.
   */
  readonly httpApp?: HttpApp;
  /**
   * API keys, each `key` (of the default tenant) or `tenant:key`. With keys, a request needs a key, unless its route is public (such as
   * `/ok` and `/docs`), or `auth` is set and authenticates its user. Without keys and `auth`, everybody who can reach the server may use
   * it; only pages from other origins and unknown host names are refused, unless `hosts`, `origins` or `studio` allow them.
   */
  readonly keys?: readonly string[];
  /**
   * An `Auth` of `@langchain/langgraph-sdk/auth`. It authenticates the users of requests without an API key, and its handlers decide what
   * each user may do. Replaces `auth` of the configuration file.
   */
  readonly auth?: AuthHandlers;
  /** Allows listening on addresses other than loopback without `keys` and `auth`. Default: false. */
  readonly insecure?: boolean;
  /**
   * The host names in requests that a server without `keys` and `auth` accepts, in addition to loopback names: each as `name`, `name:port`
   * or `*.name`; `*` accepts all.
   */
  readonly hosts?: readonly string[];
  /**
   * The origins whose pages may call the server, each as `https://name` or `https://*.name`; `*` allows all. Replaces
   * `http.cors.allow_origins` of the configuration file.
   */
  readonly origins?: readonly string[];
  /** Lets the web pages of LangGraph Studio and Agent Chat call the server. Default: false. */
  readonly studio?: boolean;
  /**
   * The request headers that are passed to runs in `config.configurable`. Default: none. Replaces `http.configurable_headers` of the
   * configuration file.
   */
  readonly configurableHeaders?: HeaderPatterns;
  /** The prefix of all paths of the server, such as `/api`. Default: no prefix. */
  readonly mount?: string;
  /** The secret with which WebSocket tokens are signed, at least 32 bytes. Default: a random secret, made at the start. */
  readonly tokenSecret?: string;
  /** The level at which completed requests are logged. Default: `debug`. */
  readonly requestLog?: LogLevel;
  /** When streamed events are sent to clients: once they are written to the operating system (`os`, the default), or at once (`memory`). */
  readonly sync?: StreamSync;
  /** Milliseconds for which the events of an ended run are kept. Default: 24 hours. */
  readonly streamsTtl?: number;
  /** Whether the stream mode `logs` includes the stack of a node's error. Default: false. */
  readonly stacks?: boolean;
  /** The lifetime of threads. Each member replaces that of `checkpointer.ttl` in the configuration file. */
  readonly threadTtl?: ThreadTtlConfig;
  readonly limits?: Partial<SystemLimits>;
  /**
   * The number of worker threads that run the nodes of the configuration file's graphs. Default: 0, nodes run in this thread. Replaces
   * `nodes.workers` of the configuration file.
   */
  readonly workers?: number;
  /** Webhook settings. Each member replaces that of `webhooks` in the configuration file. `${{ env.NAME }}` is not replaced here. */
  readonly webhooks?: WebhookConfig;
  /** Store settings. Each member replaces that of `store` in the configuration file. */
  readonly store?: StoreOptions;
  /** What the inspector shows. Each member replaces that of `inspect` in the configuration file. */
  readonly inspect?: InspectConfig;
  /** Settings of the dashboard. Each member replaces that of `dashboard` in the configuration file. */
  readonly dashboard?: DashboardConfig;
  readonly logger?: Logger;
  /** Called with the progress while the data is opened. Opening may take long. */
  readonly onProgress?: OnProgress;
  readonly clock?: Clock;
  readonly random?: Random;
  readonly scheduler?: Scheduler;
  readonly failpoints?: Failpoints;
  /** The HTTP client that sends webhooks. */
  readonly httpClient?: HttpClient;
}

/** The names of all options. The type of this constant makes the compiler report an option that is missing here. */
export const KNOWN_OPTIONS: Readonly<Record<keyof AppOptions, true>> = {
  graphs: true,
  langGraphs: true,
  config: true,
  data: true,
  storage: true,
  host: true,
  port: true,
  takeNextPort: true,
  transport: true,
  maxBody: true,
  httpApp: true,
  configurableHeaders: true,
  keys: true,
  auth: true,
  insecure: true,
  hosts: true,
  origins: true,
  studio: true,
  mount: true,
  tokenSecret: true,
  requestLog: true,
  sync: true,
  streamsTtl: true,
  stacks: true,
  threadTtl: true,
  limits: true,
  workers: true,
  webhooks: true,
  store: true,
  inspect: true,
  dashboard: true,
  logger: true,
  onProgress: true,
  clock: true,
  random: true,
  scheduler: true,
  failpoints: true,
  httpClient: true,
};

/**
 * Refuses unknown options, such as misspelt ones. An unknown option with the value undefined is ignored.
 * @param of the name of the function that takes the options
 * @throws ServiceError `config.invalid`
 */
export function checkOptions(options: object, known: Readonly<Record<string, true>>, of: string): void {
  const names = Object.keys(known);
  for (const [name, value] of Object.entries(options)) {
    if (value === undefined || Object.hasOwn(known, name)) continue;
    const meant = similarName(name, names);
    const hint = meant === undefined ? `the options are ${names.join(", ")}` : `did you mean ${meant}?`;
    throw new ServiceError("config.invalid", `${of} has no option ${JSON.stringify(name)}; ${hint}`);
  }
}

/** The key of an app's internal parts, which `createHandler` uses. */
export const HANDLER_INTERNALS: unique symbol = Symbol("heddle.handlers");

/** What `createHandler` uses of an app. */
export interface HandlerDeps {
  readonly handlers: Handlers;
  readonly maxBody: number;
  readonly bodyMemory: BodyMemory;
  readonly openBody: () => IncomingBody;
  readonly scheduler: Scheduler;
  readonly webRequests: PendingWebRequests;
  /** Whether only connections to loopback addresses are served, because neither credentials nor `insecure` are set. */
  readonly isOnlyForLoopback: boolean;
  /** Registers a handler, which is drained and closed together with the app. */
  add(part: Pick<Transport, "startDraining"> & { close(): void }): void;
}

/** A running server. One process can run several servers. */
export interface App {
  readonly address: Transport["address"];
  /** The URL for clients, without a slash at its end; empty if the app does not listen. */
  readonly url: string;
  readonly transport: { readonly kind: Transport["kind"]; readonly why: string };
  /**
   * Responds to a web request within this process, as the listening server would. To stop early, abort the request's signal or cancel the
   * response's body.
   */
  fetch(request: Request): Promise<Response>;
  readonly [HANDLER_INTERNALS]: HandlerDeps;
  readonly storage: Pick<Storage, "stats" | "memory">;
  readonly system: Pick<ThreadSystem, "counts" | "figures">;
  /**
   * Replaces all graphs. Runs in progress keep the graphs with which they started.
   * @throws ServiceError `graph.invalid`; nothing has changed then
   */
  replaceGraphs(
    graphs: { readonly [name: string]: GraphDef },
    langGraphs?: ReadonlyMap<string, LibraryGraph>,
  ): void;
  /**
   * Stops the server and its handlers. From then on, the server accepts no new connections and runs. Waits up to `ms` milliseconds (default
   * 5000) for running supersteps. Unfinished runs resume at the next start on the same data. A second call returns the promise of the
   * first.
   */
  close(ms?: number): Promise<void>;
}
