import { ServiceError } from "../model/errors.ts";
import { ForwardedAccessControl } from "../access/forwarded-access-control.ts";
import type { AccessControl, AccessOptions } from "../access/access-control.ts";
import { AssistantCopies, withCopiesForgotten } from "../cluster/assistant-copies.ts";
import { clientOfForwarded } from "../cluster/forwarded-headers.ts";
import { createRequestForwarder } from "../cluster/request-forwarder.ts";
import {
  type CallableServices,
  isProcessCall,
  isCallRefusedByStop,
  remoteAssistants,
  createRemoteParts,
  serveCall,
} from "../cluster/process-calls.ts";
import { type ListingService, MultiProcessService } from "../cluster/multi-process-service.ts";
import { shardedStoreItems } from "../cluster/sharded-store-items.ts";
import type { MultiProcessMetrics } from "../metrics/read-all-shards.ts";
import type { AuthUser } from "../model/auth-user.ts";
import { DEFAULT_TENANT } from "../model/thread.ts";
import type { Clock } from "../ports/clock.ts";
import {
  type RequestForwarder,
  type AuthenticatedClient,
  MISDIRECTED_STATUS,
  type PeerAddress,
} from "../ports/peers.ts";
import type { Random } from "../ports/random.ts";
import type { Scheduler } from "../ports/scheduler.ts";
import type { StoreItems } from "../ports/store-items.ts";
import type { Handlers, Reply, TransportOptions } from "../ports/transport.ts";
import type { Assistants } from "../service/assistants.ts";
import { type Service, type UnrestrictedService, withoutCronsOfDeleted } from "../service/service.ts";
import { createNodePeers } from "../transport/peer-connections.ts";
import { openPeerServer, type PeerServer } from "../transport/peer-server.ts";

/** The HTTP status of errors that the stop of a process causes. */
const UNAVAILABLE_STATUS = 503;

/** The place of a process among the processes of one server: its shard, if it has one, and how the others are reached. */
export interface ProcessPlace {
  /**
   * The number of the shard that this process serves, counted from 0. Absent for a process without a shard, which forwards requests and
   * merges lists of all shards.
   */
  readonly number?: number;
  readonly count: number;
  /** The name of the cluster node to which this process belongs; absent outside a cluster. */
  readonly node?: string;
  readonly network: ProcessNetwork;
}

/** How the processes of a server reach each other, and whether this process still owns its shard. */
export interface ProcessNetwork {
  /** The address on which this process listens. Port 0: any free port. */
  readonly own: PeerAddress;
  /** Returns the address on which the process of a shard listens; undefined if it is not known. */
  addressOf(shard: number): PeerAddress | undefined;
  /**
   * The pre-shared key with which processes prove to each other that they belong to the same server. Required for TCP; Unix sockets need no
   * key.
   */
  readonly key?: Uint8Array;
  /**
   * Whether this process still owns its shard. In a cluster, another node may have taken the shard; this process must then not respond to
   * requests for it.
   */
  isOwner(): boolean;
  /** Called with the actual address when the process listens. */
  onListening?(address: PeerAddress): void;
  /** Registers a function to call when the addresses of other processes have changed. */
  onChange?(listener: () => void): void;
}

interface Deps {
  readonly place: ProcessPlace;
  readonly newId: () => string;
  readonly clock: Clock;
  readonly random: Random;
  readonly scheduler: Scheduler;
}

/** Connects this process with the processes of all other shards. */
export class ShardLinks {
  readonly forwarding: RequestForwarder;
  readonly #deps: Deps;
  readonly #peers;
  /** The functions of each other process that this process can call, by shard number. No user's permissions restrict these calls. */
  readonly #others: ReadonlyMap<number, CallableServices>;
  /** The assistants of the home shard of which this process has copies. */
  readonly #copies: AssistantCopies;
  /** True once this process has given its shard up. It then only forwards requests. */
  #isReleased = false;

  constructor(deps: Deps) {
    const { place } = deps;
    const { network } = place;
    this.#deps = deps;
    this.#copies = new AssistantCopies(deps.clock);
    const peers = createNodePeers((shard) => network.addressOf(shard), deps.scheduler, network.key);
    this.#peers = peers;
    network.onChange?.(() => peers.dropUnused());
    this.forwarding = createRequestForwarder({
      ...deps,
      own: place.number,
      count: place.count,
      isOwner: () => this.#isOwner(),
      peers,
    });
    this.#others = this.#othersFor({ tenant: DEFAULT_TENANT, user: undefined });
  }

  #isOwner(): boolean {
    return !this.#isReleased && this.#deps.place.network.isOwner();
  }

  /**
   * Throws if the leases of this process's node in the cluster have not been renewed. The storage alone does not tell: a process that only
   * forwards stores nothing, and cannot know whom to forward to.
   * @throws ServiceError `storage.unavailable`
   */
  checkLeases(): void {
    if (this.#deps.place.network.isOwner()) return;
    throw new ServiceError(
      "storage.unavailable",
      "The leases of this node in the cluster's database could not be renewed",
    );
  }

  /** From now on, requests for the shard of this process are forwarded to its next owner. */
  releaseShard(): void {
    this.#isReleased = true;
  }

  #othersFor(client: AuthenticatedClient): ReadonlyMap<number, CallableServices> {
    const { place } = this.#deps;
    const others = Array.from({ length: place.count }, (_, shard) => shard).filter(
      (shard) => shard !== place.number,
    );
    const deps = { ...this.#deps, peers: this.#peers };
    return new Map(others.map((shard) => [shard, createRemoteParts(deps, shard, client)]));
  }

  /** The items of the store from all shards. */
  items(own: StoreItems): StoreItems {
    const { count } = this.#deps.place;
    return shardedStoreItems(
      Array.from({ length: count }, (_, shard) => this.#others.get(shard)?.items ?? own),
    );
  }

  /** The assistants of the server. The process of shard 0 stores them; the other processes call it. */
  assistants(own: Assistants): Assistants {
    const home = this.#others.get(0);
    if (home !== undefined) {
      // A process that has no shard, or has given it up, is not told about changes.
      const copies = () =>
        this.#deps.place.number !== undefined && this.#isOwner() ? this.#copies : undefined;
      return remoteAssistants(own, home.assistants, copies);
    }
    const others = [...this.#others.values()];
    const current = withCopiesForgotten(own, this.#deps.scheduler, () =>
      others.map(async ({ assistantCopies }) => assistantCopies.forget()),
    );
    return withoutCronsOfDeleted(current, {
      deleteOfAssistant: async (tenant, assistant) => {
        await Promise.all(others.map(({ crons }) => crons.deleteOfAssistant(tenant, assistant)));
      },
    });
  }

  /** A service whose lists contain the records of all shards. */
  service(own: UnrestrictedService): UnrestrictedService {
    const { number } = this.#deps.place;
    const service = new MultiProcessService(own, this.#others, number);
    const { threads, runs, crons, webhooks } = service;
    const { machines, machine } = own.inspection;
    return {
      ...own,
      threads,
      runs,
      crons,
      webhooks,
      inspection: { ...service.inspection, machines, machine },
    };
  }

  /**
   * Returns a service like {@link service}, but restricted to what a user may do. Each other process applies the restriction to its own
   * records.
   */
  serviceOf(own: Service, user: AuthUser): Service {
    const others: ReadonlyMap<number, ListingService> = this.#othersFor({ tenant: DEFAULT_TENANT, user });
    return new MultiProcessService(own, others, this.#deps.place.number);
  }

  /** The access control for requests that other processes forward. */
  access(options: AccessOptions): AccessControl {
    return new ForwardedAccessControl(options, this.#deps, clientOfForwarded);
  }

  /** The shard and node of this process, and the function that reads the metrics of all other shards. */
  get metrics(): MultiProcessMetrics {
    const { number, node } = this.#deps.place;
    return {
      shard: number,
      node,
      readOthers: async (read) => {
        const answers = [...this.#others].map(async ([shard, { metrics }]) => {
          const answer = await read(metrics).catch(() => undefined);
          return [shard, answer] as const;
        });
        return new Map(await Promise.all(answers));
      },
    };
  }

  /**
   * Serves requests and calls of the other processes. Resolves with undefined if this process has no shard.
   * @param handlers handle the requests that other processes forward
   * @param partsOf returns the functions that another process may call while it handles a request of this client
   */
  async listen(
    handlers: Handlers,
    partsOf: (client: AuthenticatedClient) => Omit<CallableServices, "assistantCopies">,
    options: Pick<TransportOptions, "maxBody" | "bodyMemory" | "scheduler">,
  ): Promise<PeerServer | undefined> {
    const { network, number } = this.#deps.place;
    if (number === undefined) return undefined;
    let isMoving = false;
    const callable = (client: AuthenticatedClient): CallableServices => ({
      ...partsOf(client),
      assistantCopies: this.#copies,
    });
    const request: Handlers["request"] = (asked, reply) => {
      if (!this.#isOwner()) return reply.send(MISDIRECTED_STATUS, {});
      const answered = (isRefusal: (body: Uint8Array | string) => boolean): Reply =>
        network.key === undefined ? reply : misdirectRefused(reply, () => isMoving, isRefusal);
      if (isProcessCall(asked)) return serveCall(asked, answered(isCallRefusedByStop), callable);
      handlers.request(asked, answered(isRequestRefusedByStop));
    };
    const upgrade: Handlers["upgrade"] = (asked) =>
      this.#isOwner()
        ? handlers.upgrade(asked)
        : { kind: "refuse", status: MISDIRECTED_STATUS, headers: {}, body: "" };
    const secured = network.key && { shard: number, key: network.key };
    const server = await openPeerServer({ ...handlers, request, upgrade }, network.own, options, secured);
    network.onListening?.(server.address);
    return {
      address: server.address,
      startDraining: () => {
        // Only in a cluster, which has a key, another process takes over the shard.
        isMoving = network.key !== undefined;
        server.startDraining();
      },
      close: () => server.close(),
    };
  }

  close(): void {
    this.#peers.close();
  }
}

/**
 * Wraps a reply of a process whose shard moves to another process when it stops. While `isMoving` returns true, a refusal because of the
 * stop becomes a response with the status {@link MISDIRECTED_STATUS}, so that the sender asks the shard's next owner. A storage failure is
 * not changed, because the request may have been carried out.
 * @param isRefusal whether the body of a response with the status {@link UNAVAILABLE_STATUS} says that the process stops
 */
const misdirectRefused = (
  reply: Reply,
  isMoving: () => boolean,
  isRefusal: (body: Uint8Array | string) => boolean,
): Reply => ({
  send: (status, headers, body) =>
    status === UNAVAILABLE_STATUS && isMoving() && body !== undefined && isRefusal(body)
      ? reply.send(MISDIRECTED_STATUS, {})
      : reply.send(status, headers, body),
  open: (status, headers, first) => reply.open(status, headers, first),
  onAbort: (listener) => reply.onAbort(listener),
  get aborted() {
    return reply.aborted;
  },
  get isPeerLost() {
    return reply.isPeerLost === true;
  },
});

const isRequestRefusedByStop = (body: Uint8Array | string): boolean =>
  Buffer.from(body).includes('"code":"server.draining"');
