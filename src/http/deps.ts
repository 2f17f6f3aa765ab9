import type { Door } from "../access/access-control.ts";
import type { Budget } from "../ports/time-budget.ts";
import type { Clock } from "../ports/clock.ts";
import type { LogLevel, Logger } from "../ports/logger.ts";
import type { Scheduler } from "../ports/scheduler.ts";
import type { Transport } from "../ports/transport.ts";
import type { Service } from "../service/service.ts";
import type { SendJson, SendList } from "./json-list.ts";
import type { Traffic } from "./response-counts.ts";

/** What `/ready` says besides that work is taken. */
export interface ReadyDetails {
  readonly damaged?: { readonly threads: number; readonly keys: number; readonly ranges: number };
  /** What is still to be read of the tables that were not read at the start. */
  readonly verifying?: { readonly tables: number; readonly bytes: number };
}

export interface HttpDeps {
  readonly service: Service;
  readonly door: Door;
  readonly scheduler: Scheduler;
  readonly clock: Clock;
  /** What long work, such as writing a list, may take of a turn. */
  readonly budget: Budget;
  readonly logger: Logger;
  /** At which level requests are logged. */
  readonly requestLog: LogLevel;
  /** Names a request that came without a name. */
  readonly newId: () => string;
  /** Resolves when the server can take work. @throws ServiceError `server.draining`, `storage.unavailable` */
  readonly ready: () => Promise<ReadyDetails>;
  /** What people may see of live actors. */
  readonly inspect: { readonly values: boolean; readonly viewer: string };
  /** A file of a page, by name. */
  readonly pages: (name: string) => { readonly type: string; readonly body: string } | undefined;
  /** The bundle of a graph's components, undefined where it has none; absent: the project has none at all. */
  readonly components?: (graph: string) =>
    | Promise<{
        readonly global: string;
        readonly files: ReadonlyMap<string, { readonly type: string; readonly body: string }>;
      }>
    | undefined;
  /** Counts what goes through. */
  readonly traffic: Traffic;
  /** The server's figures, as text of the type that is told. */
  readonly metrics: () => Promise<{ readonly type: string; readonly body: string }>;
  /** For `/info`. */
  readonly about: About;
}

/** What routes are made with. */
export interface RouteDeps extends HttpDeps {
  readonly sendList: SendList;
  readonly sendJson: SendJson;
}

/** What a server says of itself. */
export interface About {
  /** Heddle's own version. */
  readonly version: string;
  readonly transport: { readonly kind: Transport["kind"]; readonly why: string };
}
