import type { Clock } from "../ports/clock.ts";
import type {
  ClusterMember,
  ClusterNode,
  ClusterView,
  Membership,
  RenewedView,
  ShardLease,
} from "../ports/membership.ts";
import type { MemoryShardLog } from "./memory-shard-log.ts";

interface OwnedLease extends ShardLease {
  readonly node: string;
  readonly until: number;
}

/** Nodes and leases in the memory of this process, for tests and simulations. All nodes of a cluster share one instance. */
export class MemoryMembership implements Membership {
  readonly #log: MemoryShardLog;
  readonly #clock: Clock;
  readonly #leaseMs: number;
  readonly #nodes = new Map<string, { readonly node: ClusterMember; readonly until: number }>();
  readonly #leases = new Map<number, OwnedLease>();

  /** `clock`: the clock by which the leases of all nodes end. `leaseMs`: the length of a lease in milliseconds. */
  constructor(log: MemoryShardLog, clock: Clock, leaseMs: number) {
    this.#log = log;
    this.#clock = clock;
    this.#leaseMs = leaseMs;
  }

  async renew(node: ClusterNode, leases: readonly ShardLease[]): Promise<RenewedView> {
    const now = this.#clock.mono();
    const until = now + this.#leaseMs;
    const isDraining = this.#nodes.get(node.id)?.node.isDraining ?? false;
    this.#nodes.set(node.id, { node: { ...node, isDraining }, until });
    const kept = leases.filter(({ shard, epoch }) => {
      const lease = this.#leases.get(shard);
      if (lease?.node !== node.id || lease.epoch !== epoch) return false;
      this.#leases.set(shard, { ...lease, until });
      return true;
    });
    return { ...(await this.view()), kept: kept.toSorted((a, b) => a.shard - b.shard) };
  }

  async view(): Promise<ClusterView> {
    const now = this.#clock.mono();
    return {
      nodes: [...this.#nodes.values()]
        .filter((one) => one.until > now)
        .map((one) => one.node)
        .toSorted((a, b) => (a.id < b.id ? -1 : 1)),
      owners: [...this.#leases.values()]
        .filter((lease) => lease.until > now)
        .map(({ shard, epoch, node }) => ({ shard, epoch, node }))
        .toSorted((a, b) => a.shard - b.shard),
    };
  }

  async take(node: string, shard: number): Promise<number | undefined> {
    const now = this.#clock.mono();
    const lease = this.#leases.get(shard);
    if (lease !== undefined && lease.node !== node && lease.until > now) return undefined;
    const epoch = this.#log.newEpoch(shard);
    this.#leases.set(shard, { shard, epoch, node, until: now + this.#leaseMs });
    return epoch;
  }

  async give(node: string, { shard, epoch }: ShardLease): Promise<void> {
    const lease = this.#leases.get(shard);
    if (lease?.node === node && lease.epoch === epoch) this.#leases.delete(shard);
  }

  async setDraining(id: string, isDraining: boolean): Promise<boolean> {
    const found = this.#nodes.get(id);
    if (found === undefined || found.until <= this.#clock.mono()) return false;
    this.#nodes.set(id, { ...found, node: { ...found.node, isDraining } });
    return true;
  }

  async leave(node: string): Promise<void> {
    this.#nodes.delete(node);
    for (const lease of this.#leases.values()) if (lease.node === node) this.#leases.delete(lease.shard);
  }
}
