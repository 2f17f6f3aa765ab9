import type { AccessControl } from "../access/access-control.ts";
import type { HeaderSelector } from "../access/configurable-headers.ts";
import type { AuthUser } from "../model/auth-user.ts";
import type { ResponseMemoryBudget } from "../stream/response-memory-budget.ts";
import type { TimeBudget } from "../ports/time-budget.ts";
import type { Clock } from "../ports/clock.ts";
import type { LogLevel, Logger } from "../ports/logger.ts";
import type { RequestForwarder } from "../ports/peers.ts";
import type { Scheduler } from "../ports/scheduler.ts";
import type { Transport } from "../ports/transport.ts";
import type { Service } from "../service/service.ts";
import type { HttpAppHandler } from "./custom-http-app.ts";
import type { SendStored, SendJson, SendList } from "./json-responses.ts";
import type { UnattendedRuns } from "./unattended-runs.ts";
import type { TrafficCounts } from "./response-counts.ts";

/** Details of a `/ready` response. */
export interface ReadyDetails {
  /**
   * The numbers of threads, keys and key ranges that are not served because their data was lost, and the number of faults found in the
   * storage (`findings`) that an operator has not accepted yet.
   */
  readonly damaged?: {
    readonly threads: number;
    readonly keys: number;
    readonly ranges: number;
    readonly findings: number;
  };
  /**
   * What the background check of the storage has still to read: database tables that were not verified when the server started, and their
   * bytes.
   */
  readonly verifying?: { readonly tables: number; readonly bytes: number };
}

export interface HttpDeps {
  /** The service without permission checks. Routes use {@link RouteCall.service} instead. */
  readonly service: Service;
  /** Returns the service restricted to what a user may do. Absent if the server has no users. */
  readonly serviceOf?: (user: AuthUser) => Service;
  readonly access: AccessControl;
  /** Which request headers are passed to the runs that a request starts. */
  readonly configurableHeaders: HeaderSelector;
  readonly scheduler: Scheduler;
  readonly clock: Clock;
  /** Limits how much of a turn of the event loop long work, such as writing a list, may take. */
  readonly budget: TimeBudget;
  /** Limits the memory of responses that are not streams. The memory of streams is limited by `streamMemory`. */
  readonly memory: ResponseMemoryBudget;
  readonly streamMemory: ResponseMemoryBudget;
  readonly logger: Logger;
  readonly requestLog: LogLevel;
  /** Makes the id of a request that has none. */
  readonly newId: () => string;
  /** Resolves when the server can take work. @throws ServiceError `server.draining`, `storage.unavailable` */
  readonly ready: () => Promise<ReadyDetails>;
  /** The settings of the inspector. */
  readonly inspect: { readonly values: boolean; readonly viewer: string };
  /** The settings of the dashboard. */
  readonly dashboard: {
    /** Dollars per million input (`in`) and output (`out`) tokens, by model. */
    readonly prices: { readonly [model: string]: { readonly in: number; readonly out: number } };
    /** True: the project's rules decide what each user may see. */
    readonly has_users: boolean;
  };
  /** Returns a file of the web pages (dashboard, inspector, documentation) by its name, or undefined if there is no such file. */
  readonly pages: (name: string) => { readonly type: string; readonly body: string } | undefined;
  /** Returns the bundle of a graph's UI components, or undefined if the graph has none. Absent if the project has no components. */
  readonly components?: (graph: string) =>
    | Promise<{
        readonly global: string;
        readonly files: ReadonlyMap<string, { readonly type: string; readonly body: string }>;
      }>
    | undefined;
  /** The project's own HTTP application. Requests that have passed access control go to it before they go to Heddle's routes. */
  readonly httpApp?: HttpAppHandler;
  /** Forwards requests that another process of this server has to handle. Absent if this process is the whole server. */
  readonly forwarding?: RequestForwarder;
  /** Returns true once this process only forwards requests, because it has given its shard up. Absent: it never does. */
  readonly hasReleasedShard?: () => boolean;
  /**
   * True if requests come from other processes of this server instead of clients. A broken connection then does not mean that the client
   * has disconnected: the other process sends the request again.
   */
  readonly isForPeers?: boolean;
  /** The runs whose forwarded request was lost; only for requests that other processes have forwarded. */
  readonly unattendedRuns?: UnattendedRuns;
  /** Counts of requests and streams. */
  readonly traffic: TrafficCounts;
  /** The server's metrics as text, with its content type. */
  readonly metrics: () => Promise<{ readonly type: string; readonly body: string }>;
  /** The metrics of the last hour. */
  readonly metricsHistory: () => Promise<object>;
  /** The metrics of the server's shards, for `/info`. Absent if this process is the whole server. */
  readonly shardStatus?: () => Promise<object>;
  /** The server's versions and transport, shown by `/info`. */
  readonly about: ServerInfo;
}

/**
 * The dependencies of routes. They do not include the service: a route uses {@link RouteCall.service}, which has the client's permissions.
 */
export interface RouteDeps extends Omit<HttpDeps, "service" | "serviceOf"> {
  readonly sendList: SendList;
  readonly sendJson: SendJson;
  readonly sendStored: SendStored;
}

export interface ServerInfo {
  /** Heddle's own version. */
  readonly version: string;
  readonly transport: { readonly kind: Transport["kind"]; readonly why: string };
  /** The version of the LangGraph.js that the served graphs use; undefined if none of them is a LangGraph.js graph. */
  readonly langGraphVersion?: () => string | undefined;
}
