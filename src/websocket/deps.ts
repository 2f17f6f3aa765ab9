import type { AccessControl } from "../access/access-control.ts";
import type { Journal } from "../ports/journal.ts";
import type { LogLevel, Logger } from "../ports/logger.ts";
import type { MemoryBudget } from "../ports/memory-budget.ts";
import type { Scheduler } from "../ports/scheduler.ts";
import type { TimeBudget } from "../ports/time-budget.ts";
import type { Socket } from "../ports/transport.ts";
import type { ThreadProtocol } from "../service/thread-protocol.ts";
import type { Runs } from "../service/runs.ts";
import type { Hub } from "../stream/hub.ts";
import type { OpenSockets } from "./open-sockets.ts";

export interface WebSocketDeps {
  readonly journal: Journal;
  readonly hub: Hub;
  readonly runs: Pick<Runs, "start" | "cancel" | "followThread">;
  readonly protocol: ThreadProtocol;
  readonly scheduler: Scheduler;
  readonly budget: TimeBudget;
  readonly streamMemory: MemoryBudget;
  readonly logger: Logger;
  readonly access: AccessControl;
  /** Counts open sockets, except those of `inspect`. */
  readonly sockets: OpenSockets;
  /** Serves a socket that shows live actors. */
  readonly inspect: (socket: Socket, tenant: string, query: string) => void;
  /** The level at which connections and commands are logged. */
  readonly requestLog: LogLevel;
}

/** An accepted upgrade request: the parts that are needed after the request is gone. */
export interface AcceptedUpgrade {
  readonly tenant: string;
  /** The variable segments of the path. */
  readonly parts: readonly string[];
  readonly query: string;
  readonly lastEventId: string | undefined;
  /** True for MessagePack messages; else text. */
  readonly packed: boolean;
}
