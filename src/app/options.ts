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
import type { Storage, StorageOptions } from "../storage/open.ts";
import type { StoreOptions } from "../config/store.ts";
import type { StreamSync } from "../stream/attempt-event-writer.ts";
import type { ThreadTtlConfig } from "../config/thread-ttl.ts";
import type { WebhookConfig } from "../config/webhooks.ts";

export interface AppOptions {
  /** The graphs to serve, by name: Heddle's own or LangGraph.js graphs. They replace graphs of the same names in the configuration file. */
  readonly graphs?: { readonly [name: string]: InlineGraph };
  /** LangGraph.js graphs to serve, by name, in the form in which the graph loader returns them. */
  readonly langGraphs?: ReadonlyMap<string, LibraryGraph>;
  /** A configuration file. Its graphs are served too; its settings apply where these options set nothing. */
  readonly config?: string | Config;
  /** The data directory, or the options of a storage. Absent: data is kept in memory only, and lost when the app ends. */
  readonly data?: string | StorageOptions;
  /**
   * An open storage, instead of `data`. If there are several, the server has one shard for each. The server closes them
   * when it is closed.
   */
  readonly storage?: Storage | readonly Storage[];
  /** The address to listen on. Default: loopback. Any other address needs `keys`, `auth` or `insecure`. */
  readonly host?: string;
  /** The port to listen on; default 0: any free port. */
  readonly port?: number;
  /** Whether to take the next free port if `port` is taken. At most 100 further ports are tried. Default: false. */
  readonly takeNextPort?: boolean;
  /**
   * The transport. Default: uWebSockets.js if it has a binary for this platform, else Node's own servers. `none`: the
   * app does not listen; requests come through `createHandler` or `fetch`, and runs cannot have webhooks that are paths
   * on this server.
   */
  readonly transport?: Transport["kind"];
  /** The largest request body, in bytes; default 16 MiB. */
  readonly maxBody?: number;
  /**
   * The project's own HTTP application, which gets each request before Heddle's routes do: a function that takes a web `Request`, or an
   * object with a method `fetch`. Replaces the file's `http.app`.
   */
  readonly httpApp?: HttpApp;
  /**
   * API keys, each `key` (of the default tenant) or `tenant:key`. With keys, every request needs one, unless
   * `auth` is set and finds its user. Without keys and `auth`, everybody who reaches the server may use it,
   * except pages of other origins; `hosts`, `origins` and `studio` allow more.
   */
  readonly keys?: readonly string[];
  /**
   * An `Auth` of `@langchain/langgraph-sdk/auth`. It authenticates the users of requests without a key, and its handlers decide what each user
   * may do. Replaces the file's `auth`.
   */
  readonly auth?: AuthHandlers;
  /** Allows listening on other addresses than loopback without `keys` and `auth`. */
  readonly insecure?: boolean;
  /**
   * The host names that a server without `keys` and `auth` answers to, in addition to loopback names: each as
   * `name`, `name:port` or `*.name`, or `*` for all.
   */
  readonly hosts?: readonly string[];
  /**
   * The origins whose pages may use the server, each as `https://name` or `https://*.name`, or `*` for all. Replaces
   * the file's `http.cors.allow_origins`.
   */
  readonly origins?: readonly string[];
  /** Lets pages of LangGraph Studio and Agent Chat use the server. Default: false. */
  readonly studio?: boolean;
  /**
   * The request headers that runs find in `config.configurable`. Default: none. Replaces the file's
   * `http.configurable_headers`.
   */
  readonly configurableHeaders?: HeaderPatterns;
  /** The prefix of all paths, such as `/api`. */
  readonly mount?: string;
  /** The secret that signs WebSocket tokens, 32 bytes or more; default: random, made at start. */
  readonly tokenSecret?: string;
  /** The level at which answered requests are logged; default `debug`. */
  readonly requestLog?: LogLevel;
  /**
   * The moment when streamed events are sent to readers: once they are written to the operating system (`os`, default),
   * or at once (`memory`).
   */
  readonly sync?: StreamSync;
  /** Milliseconds that the events of an ended run are kept; default 24 h. */
  readonly streamsTtl?: number;
  /** Whether the stream mode `logs` includes the stack of a node's failure. Default: false. */
  readonly stacks?: boolean;
  /** The lifetime of threads. Each key overrides the one in the configuration file's `checkpointer.ttl`. */
  readonly threadTtl?: ThreadTtlConfig;
  readonly limits?: Partial<SystemLimits>;
  /**
   * The number of worker threads that run the nodes of the configuration file's graphs; default 0: nodes run in this
   * thread. Replaces the file's `nodes.workers`.
   */
  readonly workers?: number;
  /** Webhook settings. Each key overrides the one in the configuration file's section `webhooks`. `${{ env.NAME }}` is not replaced here. */
  readonly webhooks?: WebhookConfig;
  /** Store settings. Each key overrides the one in the configuration file's section `store`. */
  readonly store?: StoreOptions;
  /** What the inspector shows. Each key overrides the one in the configuration file's section `inspect`. */
  readonly inspect?: InspectConfig;
  /** What the dashboard shows beside the data of the API. Each key overrides the one in the configuration file's section `dashboard`. */
  readonly dashboard?: DashboardConfig;
  readonly logger?: Logger;
  /** Called with the progress of opening the data, which may take long. */
  readonly onProgress?: OnProgress;
  readonly clock?: Clock;
  readonly random?: Random;
  readonly scheduler?: Scheduler;
  readonly failpoints?: Failpoints;
  /** The HTTP client that sends webhooks. */
  readonly httpClient?: HttpClient;
}

/** The names of all options. The type makes the compiler report an option that is missing here. */
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
 * Refuses unknown options, such as misspelt ones.
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

/** The key under which an app holds its internal parts, for `createHandler`. */
export const HANDLER_INTERNALS: unique symbol = Symbol("heddle.handlers");

/** The parts of an app that `createHandler` uses. */
export interface HandlerDeps {
  readonly handlers: Handlers;
  readonly maxBody: number;
  readonly bodyMemory: BodyMemory;
  readonly openBody: () => IncomingBody;
  readonly scheduler: Scheduler;
  readonly webRequests: PendingWebRequests;
  /** Whether only clients on this machine are served, because neither credentials nor `insecure` are set. */
  readonly isOnlyForLoopback: boolean;
  /** Registers a handler, to be drained and closed together with the app. */
  add(part: Pick<Transport, "startDraining"> & { close(): void }): void;
}

/** A running server. One process can run several. */
export interface App {
  readonly address: Transport["address"];
  /** The URL for clients, without a slash at its end; empty when the app does not listen. */
  readonly url: string;
  readonly transport: { readonly kind: Transport["kind"]; readonly why: string };
  /**
   * Answers a web request within this process, as the server would. To stop early, abort the request's signal
   * or cancel the response's body.
   */
  fetch(request: Request): Promise<Response>;
  readonly [HANDLER_INTERNALS]: HandlerDeps;
  readonly storage: Pick<Storage, "stats" | "memory">;
  readonly system: Pick<ThreadSystem, "counts" | "figures">;
  /**
   * Replaces all graphs. Runs in progress keep the definition that they started with.
   * @throws ServiceError `graph.invalid`; then nothing has changed
   */
  replaceGraphs(
    graphs: { readonly [name: string]: GraphDef },
    langGraphs?: ReadonlyMap<string, LibraryGraph>,
  ): void;
  /**
   * Stops the server and its handlers: it accepts no new connections and runs, and gives running supersteps `ms` (default 5 s) to end. Unfinished runs
   * resume at the next start on the same data. A second call waits for the first.
   */
  close(ms?: number): Promise<void>;
}
