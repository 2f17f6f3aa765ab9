import type { ProcessNetwork } from "../app.ts";
import { machineTime } from "../platform/machine-time.ts";
import type { PeerAddress } from "../ports/peers.ts";

/** Where a cluster's database is. */
export interface ClusterDatabaseLocation {
  readonly url: string;
  readonly schema?: string;
  readonly leaseMs?: number;
}

/** The settings that the parent process on a cluster node passes to each of its child processes. */
export interface ClusterTask extends ClusterDatabaseLocation {
  /** The name of the node. */
  readonly node: string;
  /** The host on which the process listens for requests of other nodes. */
  readonly host: string;
  /** The pre-shared key for connections between nodes, in hexadecimal. */
  readonly key: string;
  /** When a shard's log has grown by this many bytes, a snapshot of the shard is made. Absent: the default. */
  readonly snapshotBytes?: number;
  /**
   * The epoch of the lease under which the process serves its shard; 0 for a process without a shard. Absent for a process that prepares
   * to serve a shard of another node: it gets the epoch in an {@link OwnershipMessage}.
   */
  readonly epoch?: number;
}

/** The message with which the parent process tells a process that has prepared to serve a shard that its node now owns the shard. */
export interface OwnershipMessage {
  readonly epoch: number;
}

/** The message that the parent process sends to each of its child processes, at the child's start and after each renewal of the leases. */
export interface ClusterUpdate {
  readonly routes: readonly (readonly [shard: number, PeerAddress])[];
  /** The time, in milliseconds of {@link machineTime}, until which no other node can take a shard of this node. */
  readonly validUntil: number;
}

/**
 * Returns the epoch of the lease under which this process serves its shard; a promise if its node does not own the shard yet. MUST be called
 * before the event loop turns: a message without a listener is lost.
 */
export function epochOf({ epoch }: ClusterTask): number | Promise<number> {
  if (epoch !== undefined) return epoch;
  return new Promise((resolve) => {
    const listen = (message: unknown): void => {
      if (typeof message !== "object" || message === null || !("epoch" in message)) return;
      process.off("message", listen);
      resolve((message as OwnershipMessage).epoch);
    };
    process.on("message", listen);
  });
}

/** Ends this process at once, without a further turn of its event loop, so that it sends no further response. */
export const killThisProcess = (): void => void process.kill(process.pid, "SIGKILL");

/**
 * Creates the network of a process of a cluster node. The messages of the parent process keep the addresses of the cluster's processes, and
 * the end of this node's leases, up to date. MUST be called before the event loop turns: the parent's first message may have arrived already,
 * and a message without a listener is lost.
 */
export function createClusterNetwork({
  host,
  key,
}: ClusterTask): ProcessNetwork & { readonly listening: PeerAddress | undefined } {
  let routes: ReadonlyMap<number, PeerAddress> = new Map();
  let validUntil = -Infinity;
  let listening: PeerAddress | undefined;
  const listeners: (() => void)[] = [];
  process.on("message", (message) => {
    if (typeof message !== "object" || message === null || !("routes" in message)) return;
    const update = message as ClusterUpdate;
    routes = new Map(update.routes);
    ({ validUntil } = update);
    for (const listener of listeners) listener();
  });
  return {
    own: { host, port: 0 },
    key: Buffer.from(key, "hex"),
    addressOf: (shard) => routes.get(shard),
    isOwner: () => machineTime() < validUntil,
    onListening: (address) => (listening = address),
    onChange: (listener) => void listeners.push(listener),
    get listening() {
      return listening;
    },
  };
}
