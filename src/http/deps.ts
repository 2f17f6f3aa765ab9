import type { AccessControl } from "../access/access-control.ts";
import type { MemoryBudget } from "../ports/memory-budget.ts";
import type { TimeBudget } from "../ports/time-budget.ts";
import type { Clock } from "../ports/clock.ts";
import type { LogLevel, Logger } from "../ports/logger.ts";
import type { Scheduler } from "../ports/scheduler.ts";
import type { Transport } from "../ports/transport.ts";
import type { Service } from "../service/service.ts";
import type { ReadJson, SendJson, SendList } from "./json-list.ts";
import type { Traffic } from "./response-counts.ts";

/** Details of a `/ready` response. */
export interface ReadyDetails {
  readonly damaged?: { readonly threads: number; readonly keys: number; readonly ranges: number };
  /** Tables that the start has not read and whose verification is not finished. */
  readonly verifying?: { readonly tables: number; readonly bytes: number };
}

export interface HttpDeps {
  readonly service: Service;
  readonly access: AccessControl;
  readonly scheduler: Scheduler;
  readonly clock: Clock;
  /** Limits how much of a turn long work takes, such as writing a list. */
  readonly budget: TimeBudget;
  /** Limits the memory of responses that are no streams. The next field: of streams. */
  readonly memory: MemoryBudget;
  readonly streamMemory: MemoryBudget;
  readonly logger: Logger;
  /** At which level requests are logged. */
  readonly requestLog: LogLevel;
  /** Makes the id of a request that came without one. */
  readonly newId: () => string;
  /** Resolves when the server can take work. @throws ServiceError `server.draining`, `storage.unavailable` */
  readonly ready: () => Promise<ReadyDetails>;
  /** What the inspector shows. */
  readonly inspect: { readonly values: boolean; readonly viewer: string };
  /** Finds a file of a page by name. */
  readonly pages: (name: string) => { readonly type: string; readonly body: string } | undefined;
  /** The bundle of a graph's UI components, undefined when it has none; absent when the project has no components. */
  readonly components?: (graph: string) =>
    | Promise<{
        readonly global: string;
        readonly files: ReadonlyMap<string, { readonly type: string; readonly body: string }>;
      }>
    | undefined;
  /** Counts of requests and streams. */
  readonly traffic: Traffic;
  /** The server's metrics as text, with its content type. */
  readonly metrics: () => Promise<{ readonly type: string; readonly body: string }>;
  /** The contents of `/info`. */
  readonly about: ServerInfo;
}

/** The dependencies of routes. */
export interface RouteDeps extends HttpDeps {
  readonly sendList: SendList;
  readonly sendJson: SendJson;
  readonly readJson: ReadJson;
}

/** The version and transport of a server. */
export interface ServerInfo {
  /** Heddle's own version. */
  readonly version: string;
  readonly transport: { readonly kind: Transport["kind"]; readonly why: string };
}
