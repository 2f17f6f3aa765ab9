import type { SystemLimits, ThreadSystem } from "../../actors/thread-system.ts";
import type { Config } from "../config/config.ts";
import type { GraphDef } from "../graph/graph-builder.ts";
import type { InspectConfig } from "../config/inspector.ts";
import type { Clock } from "../ports/clock.ts";
import type { Failpoints } from "../ports/failpoints.ts";
import type { Hosted } from "../ports/hosted-graph.ts";
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
  readonly langGraphs?: ReadonlyMap<string, Hosted>;
  /** A configuration file: its graphs are served too, and its settings hold where these options say nothing. */
  readonly config?: string | Config;
  /** The directory that keeps everything, or a storage by its options. Without it, memory: gone at the end. */
  readonly data?: string | StorageOptions;
  /** Instead of `data`: a storage that is open. It is closed with the server. */
  readonly storage?: Storage;
  /** Default: loopback alone. Another one needs `keys`, or `insecure`. */
  readonly host?: string;
  /** Default 0: any free port. */
  readonly port?: number;
  /** Default: uWebSockets where it has a binary, else Node's own. */
  readonly transport?: Transport["kind"];
  /** Bytes a request body may have; default 16 MiB. */
  readonly maxBody?: number;
  /**
   * API keys, each `key` (of the default tenant) or `tenant:key`. With one, every request needs one. Without, whoever
   * reaches the server may drive it, but no page of another origin: `hosts`, `origins` and `studio` name exceptions.
   */
  readonly keys?: readonly string[];
  /** Lets other machines come although there is no key. */
  readonly insecure?: boolean;
  /** Names under which the server is reached beside loopback: `name`, `name:port`, `*.name`, `*`. */
  readonly hosts?: readonly string[];
  /** Origins of pages that may drive it: `https://name`, `https://*.name`, `*`. Instead of the file's `http.cors.allow_origins`. */
  readonly origins?: readonly string[];
  /** LangGraph Studio and Agent Chat may drive it from where they are. Default: no. */
  readonly studio?: boolean;
  /** What all paths begin with, e.g. `/api`. */
  readonly mount?: string;
  /** 32 bytes or more that sign the tokens for WebSockets; default: made at start. */
  readonly tokenSecret?: string;
  /** At which level answered requests are logged; default `debug`. */
  readonly requestLog?: LogLevel;
  /** When streamed events are shown: given to the system (default), or at once. */
  readonly sync?: StreamSync;
  /** Milliseconds for which the events of a run that has ended are kept; default 24 h. */
  readonly streamsTtl?: number;
  /** Do the lines of the stream mode `logs` tell where a node failed, with its stack? Default: no. */
  readonly stacks?: boolean;
  /** How long threads are kept, key by key instead of the configuration file's `checkpointer.ttl`. */
  readonly threadTtl?: ThreadTtlConfig;
  readonly limits?: Partial<SystemLimits>;
  /**
   * Worker threads in which the nodes of the configuration file's graphs run; default 0: in this one. Instead of the file's
   * `nodes.workers`.
   */
  readonly workers?: number;
  /** Key by key instead of the configuration file's section `webhooks`. Templates are not filled in. */
  readonly webhooks?: WebhookConfig;
  /** The store's own, key by key instead of the configuration file's section `store`. */
  readonly store?: StoreOptions;
  /** What people may see of live actors, key by key instead of the configuration file's section `inspect`. */
  readonly inspect?: InspectConfig;
  readonly logger?: Logger;
  readonly clock?: Clock;
  readonly random?: Random;
  readonly scheduler?: Scheduler;
  readonly failpoints?: Failpoints;
  /** What webhooks are sent with. */
  readonly httpClient?: HttpClient;
}

/** A running server. Several may live in one process. */
export interface App {
  readonly address: Transport["address"];
  /** Where clients reach it: no slash at the end. */
  readonly url: string;
  readonly transport: { readonly kind: Transport["kind"]; readonly why: string };
  readonly storage: Pick<Storage, "stats" | "memory">;
  readonly system: Pick<ThreadSystem, "counts">;
  /**
   * From now on these graphs are served, and no others. Runs under way keep the definition that they began with.
   * @throws ServiceError `graph.invalid`, and nothing has changed
   */
  replaceGraphs(
    graphs: { readonly [name: string]: GraphDef },
    langGraphs?: ReadonlyMap<string, Hosted>,
  ): void;
  /**
   * Stops in good order: no new connections and runs, `ms` (default 5 s) for running supersteps to end, what is left is
   * taken up by the next start on the same data. Called again, it waits for the same end.
   */
  close(ms?: number): Promise<void>;
}
