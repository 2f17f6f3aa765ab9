import type { AccessControl } from "../access/access-control.ts";
import type { HeaderSelector } from "../access/configurable-headers.ts";
import type { AuthUser } from "../model/auth-user.ts";
import type { JsonObject } from "../model/json.ts";
import type { LogLevel, Logger } from "../ports/logger.ts";
import type { ResponseMemoryBudget } from "../stream/response-memory-budget.ts";
import type { RequestForwarder } from "../ports/peers.ts";
import type { Scheduler } from "../ports/scheduler.ts";
import type { TimeBudget } from "../ports/time-budget.ts";
import type { Socket } from "../ports/transport.ts";
import type { ActorInspection } from "../service/actor-inspection.ts";
import type { Runs } from "../service/runs.ts";
import type { MachineEvents } from "../service/machine-events.ts";
import type { ThreadProtocol } from "../service/thread-protocol.ts";
import type { Threads } from "../service/threads.ts";
import type { OpenSockets } from "./open-sockets.ts";

/** The services that sockets use, limited to the methods that they need. */
export interface SocketService {
  readonly threads: Pick<Threads, "record">;
  readonly runs: Pick<
    Runs,
    "start" | "cancel" | "findForReading" | "follow" | "followThread" | "keepForReading"
  >;
  readonly events: Pick<MachineEvents, "send">;
  readonly protocol: ThreadProtocol;
  readonly inspection: ActorInspection;
}

/** The client of a socket, with the service that it may use. */
export interface SocketClient {
  readonly tenant: string;
  /** The user. Undefined if the client has authenticated with an API key, or if the server needs no credentials. */
  readonly user: AuthUser | undefined;
  /** The name under which the time and memory used by the client are counted. Clients with the same name share one part of each budget. */
  readonly budgetOwner: string;
  /** The service, restricted to what this client may do. */
  readonly service: SocketService;
}

export interface UpgradeDeps {
  /** The service without permission checks. A socket MUST use {@link SocketClient.service} instead. */
  readonly service: SocketService;
  /** Returns the service restricted to what a user may do. Absent if the server has no users. */
  readonly serviceOf?: (user: AuthUser) => SocketService;
  readonly scheduler: Scheduler;
  readonly budget: TimeBudget;
  readonly streamMemory: ResponseMemoryBudget;
  readonly logger: Logger;
  readonly access: AccessControl;
  /** Selects the handshake headers that are passed to the runs that the socket starts. */
  readonly configurableHeaders: HeaderSelector;
  readonly sockets: OpenSockets;
  /** Serves a socket of the inspector, which shows the actors in memory. */
  readonly inspect: (socket: Socket, client: SocketClient, query: string) => void;
  /** Forwards sockets to other processes of this server; absent if there are no other processes. */
  readonly forwarding?: RequestForwarder;
  /** The level at which connections and commands are logged. */
  readonly requestLog: LogLevel;
}

/**
 * The dependencies of the handler of one socket. They do not include the service: a handler uses the service in {@link AcceptedUpgrade},
 * which has the client's permissions.
 */
export type SocketHandlerDeps = Omit<UpgradeDeps, "service" | "serviceOf">;

/** An accepted upgrade: the client, and the data of the handshake request that is needed after the request object has become invalid. */
export interface AcceptedUpgrade extends SocketClient {
  /** The variable segments of the path, such as the thread's id, in the order of the path. */
  readonly parts: readonly string[];
  readonly query: string;
  readonly lastEventId: string | undefined;
  /** Values from handshake headers that are added to `configurable` of the runs that the socket starts. */
  readonly configurable: JsonObject | undefined;
  /** True if messages are encoded as MessagePack, false if they are JSON text. */
  readonly packed: boolean;
}
