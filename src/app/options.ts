import type { SystemLimits, ThreadSystem } from "../../actors/thread-system.ts";
import type { Config } from "../config/config.ts";
import type { GraphDef } from "../graph/graph-builder.ts";
import type { InspectConfig } from "../config/inspector.ts";
import type { Clock } from "../ports/clock.ts";
import type { Failpoints } from "../ports/failpoints.ts";
import type { HostedGraph } from "../ports/hosted-graph.ts";
import type { HttpClient } from "../ports/http-client.ts";
import type { Logger, LogLevel } from "../ports/logger.ts";
import type { Random } from "../ports/random.ts";
import type { Scheduler } from "../ports/scheduler.ts";
import type { Transport } from "../ports/transport.ts";
import type { Storage, StorageOptions } from "../storage/open.ts";
import type { StoreOptions } from "../config/store.ts";
import type { StreamSync } from "../stream/attempt-sink.ts";
import type { ThreadTtlConfig } from "../config/thread-ttl.ts";
import type { WebhookConfig } from "../config/webhooks.ts";

export interface AppOptions {
  /** The graphs to serve, by name. */
  readonly graphs?: { readonly [name: string]: GraphDef };
  /** LangGraph.js graphs to serve, by name, as they were loaded. */
  readonly langGraphs?: ReadonlyMap<string, HostedGraph>;
  /** A configuration file. Its graphs are served too; its settings apply where these options set nothing. */
  readonly config?: string | Config;
  /** The data directory, or a storage by its options. Absent: memory, which is lost at the end. */
  readonly data?: string | StorageOptions;
  /** An open storage, instead of `data`. It is closed with the server. */
  readonly storage?: Storage;
  /** The address to listen on. Default: loopback. Another one needs `keys` or `insecure`. */
  readonly host?: string;
  /** Default 0: any free port. */
  readonly port?: number;
  /** Default: uWebSockets.js if it has a binary for this platform, else Node's own servers. */
  readonly transport?: Transport["kind"];
  /** Bytes: the largest request body; default 16 MiB. */
  readonly maxBody?: number;
  /**
   * API keys, each `key` (of the default tenant) or `tenant:key`. With keys, every request needs one. Without, everybody who reaches the
   * server may use it, except pages of other origins; `hosts`, `origins` and `studio` allow more.
   */
  readonly keys?: readonly string[];
  /** Allows listening on other addresses than loopback without a key. */
  readonly insecure?: boolean;
  /** Host names of the server beside loopback: `name`, `name:port`, `*.name`, `*`. */
  readonly hosts?: readonly string[];
  /** Origins whose pages may use the server: `https://name`, `https://*.name`, `*`. Replaces the file's `http.cors.allow_origins`. */
  readonly origins?: readonly string[];
  /** Allows pages of LangGraph Studio and Agent Chat. Default: false. */
  readonly studio?: boolean;
  /** The prefix of all paths, such as `/api`. */
  readonly mount?: string;
  /** The secret that signs WebSocket tokens, 32 bytes or more; default: random, made at start. */
  readonly tokenSecret?: string;
  /** The level at which answered requests are logged; default `debug`. */
  readonly requestLog?: LogLevel;
  /** When streamed events are sent to readers: when the operating system has them (default), or at once. */
  readonly sync?: StreamSync;
  /** Milliseconds that the events of an ended run are kept; default 24 h. */
  readonly streamsTtl?: number;
  /** Whether the stream mode `logs` includes the stack of a node's failure. Default: false. */
  readonly stacks?: boolean;
  /** How long threads are kept. Each key overrides the one in the configuration file's `checkpointer.ttl`. */
  readonly threadTtl?: ThreadTtlConfig;
  readonly limits?: Partial<SystemLimits>;
  /**
   * Worker threads that run the nodes of the configuration file's graphs; default 0: they run in this thread. Replaces the file's
   * `nodes.workers`.
   */
  readonly workers?: number;
  /** Webhook settings. Each key overrides the one in the configuration file's section `webhooks`. Templates are not filled in. */
  readonly webhooks?: WebhookConfig;
  /** Store settings. Each key overrides the one in the configuration file's section `store`. */
  readonly store?: StoreOptions;
  /** What the inspector shows. Each key overrides the one in the configuration file's section `inspect`. */
  readonly inspect?: InspectConfig;
  readonly logger?: Logger;
  readonly clock?: Clock;
  readonly random?: Random;
  readonly scheduler?: Scheduler;
  readonly failpoints?: Failpoints;
  /** The HTTP client that sends webhooks. */
  readonly httpClient?: HttpClient;
}

/** A running server. Several may live in one process. */
export interface App {
  readonly address: Transport["address"];
  /** The URL for clients, without a slash at its end. */
  readonly url: string;
  readonly transport: { readonly kind: Transport["kind"]; readonly why: string };
  readonly storage: Pick<Storage, "stats" | "memory">;
  readonly system: Pick<ThreadSystem, "counts" | "figures">;
  /**
   * Replaces all graphs. Runs in progress keep the definition that they started with.
   * @throws ServiceError `graph.invalid`; then nothing has changed
   */
  replaceGraphs(
    graphs: { readonly [name: string]: GraphDef },
    langGraphs?: ReadonlyMap<string, HostedGraph>,
  ): void;
  /**
   * Stops the server: it accepts no new connections and runs, and gives running supersteps `ms` (default 5 s) to end. Unfinished runs
   * resume at the next start on the same data. A second call waits for the same end.
   */
  close(ms?: number): Promise<void>;
}
