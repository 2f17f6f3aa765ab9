import type { AccessControl } from "../access/access-control.ts";
import type { HeaderSelector } from "../access/configurable-headers.ts";
import type { AuthUser } from "../model/auth-user.ts";
import type { JsonObject } from "../model/json.ts";
import type { LogLevel, Logger } from "../ports/logger.ts";
import type { MemoryBudget } from "../ports/memory-budget.ts";
import type { Scheduler } from "../ports/scheduler.ts";
import type { TimeBudget } from "../ports/time-budget.ts";
import type { Socket } from "../ports/transport.ts";
import type { ActorInspection } from "../service/actor-inspection.ts";
import type { Runs } from "../service/runs.ts";
import type { ThreadEvents } from "../service/thread-events.ts";
import type { ThreadProtocol } from "../service/thread-protocol.ts";
import type { Threads } from "../service/threads.ts";
import type { OpenSockets } from "./open-sockets.ts";

/** The parts of the service that sockets use. */
export interface SocketService {
  readonly threads: Pick<Threads, "record">;
  readonly runs: Pick<
    Runs,
    "start" | "cancel" | "findForReading" | "follow" | "followThread" | "keepForReading"
  >;
  readonly events: Pick<ThreadEvents, "send">;
  readonly protocol: ThreadProtocol;
  readonly inspection: ActorInspection;
}

/** Who has opened a socket, and what that client gets. */
export interface SocketClient {
  readonly tenant: string;
  /** The service as this client may use it. */
  readonly service: SocketService;
}

export interface UpgradeDeps {
  /** The service without a user's limits. A socket uses its client's: {@link SocketClient.service}. */
  readonly service: SocketService;
  /** The service as a user may use it; absent when there are no users. */
  readonly serviceOf?: (user: AuthUser) => SocketService;
  readonly scheduler: Scheduler;
  readonly budget: TimeBudget;
  readonly streamMemory: MemoryBudget;
  readonly logger: Logger;
  readonly access: AccessControl;
  /** The headers that go with a handshake into the runs its socket starts. */
  readonly configurableHeaders: HeaderSelector;
  /** Counts open sockets, except those of `inspect`. */
  readonly sockets: OpenSockets;
  /** Serves a socket that shows live actors. */
  readonly inspect: (socket: Socket, client: SocketClient, query: string) => void;
  /** The level at which connections and commands are logged. */
  readonly requestLog: LogLevel;
}

/** What serves the socket of a client: everything but the service, which the accepted upgrade has. */
export type SocketHandlerDeps = Omit<UpgradeDeps, "service" | "serviceOf">;

/** An accepted upgrade request: the parts that are needed after the request is gone. */
export interface AcceptedUpgrade extends SocketClient {
  /** The variable segments of the path. */
  readonly parts: readonly string[];
  readonly query: string;
  readonly lastEventId: string | undefined;
  /** Members for the `configurable` of the runs that the socket starts. */
  readonly configurable: JsonObject | undefined;
  /** True for MessagePack messages; else text. */
  readonly packed: boolean;
}
