import type { Door } from "../access/access-control.ts";
import type { Journal } from "../ports/journal.ts";
import type { LogLevel, Logger } from "../ports/logger.ts";
import type { Scheduler } from "../ports/scheduler.ts";
import type { Socket } from "../ports/transport.ts";
import type { Protocol } from "../service/thread-protocol.ts";
import type { Runs } from "../service/runs.ts";
import type { Hub } from "../stream/hub.ts";
import type { Sockets } from "./open-sockets.ts";

export interface LiveDeps {
  readonly journal: Journal;
  readonly hub: Hub;
  readonly runs: Pick<Runs, "start" | "cancel" | "followThread">;
  readonly protocol: Protocol;
  readonly scheduler: Scheduler;
  readonly logger: Logger;
  readonly door: Door;
  /** Counts those that are let in, but for the ones that `inspect` takes. */
  readonly sockets: Sockets;
  /** Shows live actors. */
  readonly inspect: (socket: Socket, tenant: string, query: string) => void;
  /** At which level connections and commands are logged. */
  readonly requestLog: LogLevel;
}

/** A request for a socket that is let in: what is kept of it once the request is gone. */
export interface Asked {
  readonly tenant: string;
  /** What stood in the path for the parts that may be any. */
  readonly parts: readonly string[];
  readonly query: string;
  readonly lastEventId: string | undefined;
  /** Messages are MessagePack, not text. */
  readonly packed: boolean;
}
