import type { ProcessNetwork } from "../app.ts";
import { machineTime } from "../platform/machine-time.ts";
import type { PeerAddress } from "../ports/peers.ts";

/** Where a cluster's database is. */
export interface ClusterDatabaseLocation {
  readonly url: string;
  readonly schema?: string;
  readonly leaseMs?: number;
}

/** What the parent process passes to a process of a node of a cluster. */
export interface ClusterTask extends ClusterDatabaseLocation {
  /** The host at which it listens for other nodes. */
  readonly host: string;
  /** The key of connections between nodes, in hexadecimal. */
  readonly key: string;
  /** The epoch of the lease of the shard; 0 for a process without a shard. */
  readonly epoch: number;
}

/** What the parent tells its processes after each renewal of the leases. */
export interface ClusterNews {
  readonly routes: readonly (readonly [shard: number, PeerAddress])[];
  /** Until when no other node can take a shard of this one, by the clock of the machine. */
  readonly validUntil: number;
}

/** Ends this process at once, without a further turn of its event loop: nothing more is answered. */
export const endAtOnce = (): void => void process.kill(process.pid, "SIGKILL");

/** The network of a cluster. It MUST be made before the event loop turns: the parent's news may be there already. */
export function clusterNetwork({
  host,
  key,
}: ClusterTask): ProcessNetwork & { readonly listening: PeerAddress | undefined } {
  let routes: ReadonlyMap<number, PeerAddress> = new Map();
  let validUntil = -Infinity;
  let listening: PeerAddress | undefined;
  const listeners: (() => void)[] = [];
  process.on("message", (message) => {
    if (typeof message !== "object" || message === null || !("routes" in message)) return;
    const news = message as ClusterNews;
    routes = new Map(news.routes);
    ({ validUntil } = news);
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
