import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/logger.ts";
import type { ClusterMember, ClusterNode, ClusterView, Membership, ShardLease } from "../ports/membership.ts";
import type { Cancel, Scheduler } from "../ports/scheduler.ts";
import { isSettled, nextMove, type PlacementRules, preferredOwner } from "./shard-placement.ts";

/** How often leases are renewed within the length of a lease. */
const RENEWALS_PER_LEASE = 3;
/** How often leases are renewed within the length of a lease while shards move or have no owner. Nodes then see changes soon. */
const RENEWALS_IN_MOTION = 30;
/**
 * The number of lease lengths for which a node must have been a member before other nodes give shards to it. With 2, shards moved back and
 * forth while a node was paused again and again.
 */
const ESTABLISHED_LEASES = 3;
/** The last fraction of a lease, in which the node no longer relies on the lease: its clock may be slower than the database's clock. */
const SAFETY_FRACTION = 1 / 6;

export interface ShardLeasesDeps {
  readonly membership: Membership;
  /** The number of shards of the cluster. */
  readonly shards: number;
  readonly leaseMs: number;
  readonly clock: Clock;
  readonly scheduler: Scheduler;
  readonly logger: Logger;
  /** Returns the current data of this node. Its id MUST stay the same. */
  node(): ClusterNode;
  /** Whether a node can take shards. */
  canTakeShards(node: ClusterMember): boolean;
  /** Whether the owner of a shard serves it. */
  isServed(shard: number, view: ClusterView): boolean;
  /** Whether a node has prepared to serve a shard, so that it can serve the shard soon after it has taken it. */
  isPrepared(shard: number, node: ClusterMember): boolean;
  /**
   * Called after each renewal with the shard that will move to this node; undefined if there is none. The node prepares to serve the shard,
   * and publishes that it has done so. Preparations for other shards are given up.
   */
  prepare(shard: number | undefined): void;
  /** Stops serving a shard in an orderly way. The lease of the shard is given up afterwards. MUST NOT reject. */
  release(shard: number): Promise<void>;
  /** Called with a new lease: from now on, this node owns the shard. */
  acquired(lease: ShardLease): void;
  /**
   * Called when this node no longer owns a shard, for example because another node has taken it. The implementation MUST stop serving the
   * shard at once.
   */
  lost(shard: number): void;
  /** Called after each renewal. No other node can take this node's shards before `validUntil`, in milliseconds of the monotonic clock. */
  renewed(view: ClusterView, validUntil: number): void;
}

/**
 * The leases of a node. Renews the leases, takes free shards that rendezvous hashing assigns to this node or that no node takes, and gives
 * up shards that another node should have, one at a time, each once that node has prepared to serve it.
 */
export class ShardLeases {
  readonly #deps: ShardLeasesDeps;
  readonly #owned = new Map<number, ShardLease>();
  /** Until when the node takes no shard that it has lost or given up, by shard, in milliseconds of the monotonic clock. */
  readonly #notBefore = new Map<number, number>();
  /** Since when each free shard has had no owner, in milliseconds of the monotonic clock. */
  readonly #freeSince = new Map<number, number>();
  /** Since when each node has been a member without a gap, by node id, in milliseconds of the monotonic clock. */
  readonly #livesSince = new Map<string, number>();
  #last: Promise<void> = Promise.resolve();
  #cancel: Cancel | undefined;
  #isStopping = false;
  /** Whether the database marks this node as draining: it takes no shards, and its shards move to other nodes. */
  #isDraining = false;
  #isInMotion = false;
  /** The shard that this node is giving up; undefined if none. */
  #moving: number | undefined;
  /** The shard for which this node prepares; undefined if none. */
  #preparing: number | undefined;
  #isStopped = false;
  #isFailing = false;

  constructor(deps: ShardLeasesDeps) {
    this.#deps = deps;
  }

  /** Registers the node in the cluster, and takes the free shards that it should own. @throws ServiceError `storage.unavailable` */
  async start(): Promise<void> {
    await this.#pass();
    this.#schedule();
  }

  /**
   * Renews the leases now, in addition to the regular renewals. Never rejects: if the database cannot be reached, the next renewal tries
   * again.
   */
  renewNow(): Promise<void> {
    return (this.#last = this.#last.then(() => this.#passSafely()));
  }

  /**
   * Takes a shard of this node again, with a new epoch, for example because the shard's process has ended and a new one is needed. Resolves
   * with undefined if another node owns the shard.
   */
  async retake(shard: number): Promise<ShardLease | undefined> {
    if (!this.#owned.has(shard)) return undefined;
    const { membership, node, lost } = this.#deps;
    const epoch = await membership.take(node().id, shard);
    if (epoch === undefined) {
      this.#forget(shard);
      lost(shard);
      return undefined;
    }
    const lease = { shard, epoch };
    this.#owned.set(shard, lease);
    return lease;
  }

  /** Begins to stop the node: it takes no more shards, and other nodes take its shards one by one. */
  async startStopping(): Promise<void> {
    this.#isStopping = true;
    await this.#deps.membership.setDraining(this.#deps.node().id, true);
    await this.renewNow();
  }

  /** The numbers of the shards of this node. */
  get owned(): readonly number[] {
    return [...this.#owned.keys()];
  }

  /**
   * Gives up a shard, so that another node can take it at once.
   * @param awayMs milliseconds for which this node does not take the shard again. Default: the length of a lease
   */
  async give(shard: number, awayMs?: number): Promise<void> {
    const lease = this.#owned.get(shard);
    this.#forget(shard, awayMs);
    if (lease !== undefined) await this.#deps.membership.give(this.#deps.node().id, lease);
  }

  /** Ends all leases, and the membership of the node. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#cancel?.();
    await this.#last;
    await this.#deps.membership.leave(this.#deps.node().id);
  }

  async #passSafely(): Promise<void> {
    if (this.#isStopped) return;
    const { logger } = this.#deps;
    try {
      await this.#pass();
      if (this.#isFailing) logger.info("the database of the cluster answers again");
      this.#isFailing = false;
    } catch (cause) {
      if (!this.#isFailing) logger.error("the leases of this node cannot be renewed", { cause });
      this.#isFailing = true;
    }
    this.#schedule();
  }

  #schedule(): void {
    this.#cancel?.();
    if (this.#isStopped) return;
    const { scheduler, leaseMs } = this.#deps;
    this.#cancel = scheduler.after(
      leaseMs / (this.#isInMotion ? RENEWALS_IN_MOTION : RENEWALS_PER_LEASE),
      () => void this.renewNow(),
      true,
    );
  }

  async #pass(): Promise<void> {
    const { membership, clock, leaseMs, node, lost, renewed } = this.#deps;
    const sentAt = clock.mono();
    const leases = [...this.#owned.values()];
    const { nodes, owners, kept } = await membership.renew(node(), leases);
    for (const lease of leases) {
      const { shard, epoch } = lease;
      // Since this renewal was sent, the shard may have been taken again with a new epoch.
      if (this.#owned.get(shard) !== lease || kept.some((one) => one.shard === shard && one.epoch === epoch))
        continue;
      this.#forget(shard);
      lost(shard);
    }
    this.#isDraining = nodes.some((one) => one.id === node().id && one.isDraining);
    this.#observe({ nodes, owners });
    const taken = await this.#takeFree({ nodes, owners });
    const own = taken.map((lease) => ({ ...lease, node: node().id }));
    const view = { nodes, owners: [...owners, ...own].toSorted((one, two) => one.shard - two.shard) };
    renewed(view, sentAt + leaseMs * (1 - SAFETY_FRACTION));
    this.#move(view);
  }

  /** Gives up the next shard that has to move if this node owns it, or prepares to serve it if it moves to this node. */
  #move(view: ClusterView): void {
    const { shards, leaseMs, clock, node, canTakeShards, isServed, isPrepared, prepare, release, logger } =
      this.#deps;
    const established = clock.mono() - ESTABLISHED_LEASES * leaseMs;
    const rules: PlacementRules = {
      count: shards,
      canTakeShards,
      isServed,
      isEstablished: ({ id }) => (this.#livesSince.get(id) ?? Infinity) <= established,
    };
    const next = nextMove(view, rules);
    this.#isInMotion = next !== undefined || !isSettled(view, rules);
    if (next?.to.id === node().id) this.#preparing = next.shard;
    // While no move is due because a shard has no owner yet, that shard may be the one for which this node has prepared.
    else if (next !== undefined || !this.#isInMotion) this.#preparing = undefined;
    if (this.#preparing !== undefined && this.#owned.has(this.#preparing)) this.#preparing = undefined;
    prepare(this.#preparing);
    if (next === undefined || !this.#owned.has(next.shard) || this.#moving !== undefined) return;
    const { shard, to } = next;
    if (!isPrepared(shard, to)) return;
    this.#moving = shard;
    void release(shard)
      .then(() => this.give(shard))
      .catch((cause: unknown) =>
        logger.warn("a shard could not be given up: its lease ends by itself", { shard, cause }),
      )
      .then(() => {
        this.#moving = undefined;
        return this.renewNow();
      });
  }

  /** Records since when nodes have been members, and since when shards have been free. */
  #observe({ nodes, owners }: ClusterView): void {
    const { shards, clock } = this.#deps;
    const now = clock.mono();
    const living = new Set(nodes.map(({ id }) => id));
    for (const id of this.#livesSince.keys()) if (!living.has(id)) this.#livesSince.delete(id);
    for (const id of living) if (!this.#livesSince.has(id)) this.#livesSince.set(id, now);
    const owned = new Set(owners.map(({ shard }) => shard));
    for (let shard = 0; shard < shards; shard++) {
      if (owned.has(shard)) this.#freeSince.delete(shard);
      else if (!this.#freeSince.has(shard)) this.#freeSince.set(shard, now);
    }
  }

  /** Takes free shards that rendezvous hashing assigns to this node, and shards that no node has taken for the length of a lease. */
  async #takeFree({ nodes, owners }: ClusterView): Promise<readonly ShardLease[]> {
    const { membership, shards, clock, leaseMs, node, canTakeShards, acquired } = this.#deps;
    const { id } = node();
    const able = nodes.filter((one) => one.id === id || canTakeShards(one));
    const taken: ShardLease[] = [];
    const since = clock.mono() - leaseMs;
    for (let shard = 0; shard < shards && !this.#isDraining && !this.#isStopping; shard++) {
      if (this.#owned.has(shard) || owners.some((one) => one.shard === shard)) continue;
      if ((this.#notBefore.get(shard) ?? -Infinity) > clock.mono()) continue;
      const isAbandoned = (this.#freeSince.get(shard) ?? Infinity) <= since;
      if (!isAbandoned && preferredOwner(shard, able)?.id !== id) continue;
      // oxlint-disable-next-line no-await-in-loop -- one shard at a time, so that a node that starts at the same moment gets some of them
      const epoch = await membership.take(node().id, shard);
      if (epoch === undefined) continue;
      const lease = { shard, epoch };
      this.#owned.set(shard, lease);
      taken.push(lease);
      // Called for each shard at once: taking the next one may fail, and this one would then have an owner that does not serve it.
      acquired(lease);
    }
    return taken;
  }

  #forget(shard: number, awayMs = this.#deps.leaseMs): void {
    this.#owned.delete(shard);
    this.#notBefore.set(shard, this.#deps.clock.mono() + awayMs);
  }
}
