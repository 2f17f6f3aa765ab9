import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/logger.ts";
import type { ClusterMember, ClusterNode, ClusterView, Membership, ShardLease } from "../ports/membership.ts";
import type { Cancel, Scheduler } from "../ports/scheduler.ts";
import { isSettled, nextMove } from "./shard-placement.ts";

/** Renewals in the time of a lease. */
const RENEWALS = 3;
/** The same while shards move, or have no owner: what has changed is seen soon. */
const RENEWALS_IN_MOTION = 30;
/** The part of a lease, at its end, in which a node no longer relies on it. */
const MARGIN = 1 / 6;

export interface ShardLeasesDeps {
  readonly membership: Membership;
  /** How many shards there are. */
  readonly shards: number;
  readonly leaseMs: number;
  readonly clock: Clock;
  readonly scheduler: Scheduler;
  readonly logger: Logger;
  /** This node, as it is now. Its id MUST stay the same. */
  node(): ClusterNode;
  /** Whether a node can take shards. */
  isReady(node: ClusterMember): boolean;
  /** Whether the owner of a shard serves it. */
  isServed(shard: number, view: ClusterView): boolean;
  /** Ends the service of a shard in an orderly way. Afterwards its lease is given up. MUST NOT reject. */
  release(shard: number): Promise<void>;
  /** Called with a new lease: the node has the shard from now on. */
  acquired(lease: ShardLease): void;
  /** Called when another node has a shard: this one MUST stop serving it at once. */
  lost(shard: number): void;
  /** Called after each renewal. Until `validUntil`, on the monotonic clock, no other node can take this node's shards. */
  renewed(view: ClusterView, validUntil: number): void;
}

/** The leases of a node: it renews them, and takes each shard that has no owner. */
export class ShardLeases {
  readonly #deps: ShardLeasesDeps;
  readonly #owned = new Map<number, ShardLease>();
  /** When a shard was lost. A node that has just lost one leaves it to others for the time of a lease. */
  readonly #lostAt = new Map<number, number>();
  #last: Promise<void> = Promise.resolve();
  #cancel: Cancel | undefined;
  #isStopping = false;
  /** Whether this node has been told to give its shards up. */
  #isDraining = false;
  #isInMotion = false;
  /** The shard that is being given up. */
  #moving: number | undefined;
  #isStopped = false;
  #isFailing = false;

  constructor(deps: ShardLeasesDeps) {
    this.#deps = deps;
  }

  /** Registers the node, and takes the shards that are free. @throws ServiceError `storage.unavailable` */
  async start(): Promise<void> {
    await this.#pass();
    this.#schedule();
  }

  /** Renews now, and then again in time. Never rejects: without the database, it goes on trying. */
  renewNow(): Promise<void> {
    return (this.#last = this.#last.then(() => this.#passSafely()));
  }

  /** Takes a shard of this node anew, with a new epoch. Resolves with undefined if another node has it. */
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

  /** Takes no further shard, and lets other nodes take those of this one, one after the other. */
  async startStopping(): Promise<void> {
    this.#isStopping = true;
    await this.#deps.membership.setDraining(this.#deps.node().id, true);
    await this.renewNow();
  }

  /** The shards of this node. */
  get owned(): readonly number[] {
    return [...this.#owned.keys()];
  }

  /** Gives a shard up, so that another node can take it at once. */
  async give(shard: number): Promise<void> {
    const lease = this.#owned.get(shard);
    this.#owned.delete(shard);
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
      leaseMs / (this.#isInMotion ? RENEWALS_IN_MOTION : RENEWALS),
      () => void this.renewNow(),
      true,
    );
  }

  async #pass(): Promise<void> {
    const { membership, clock, leaseMs, node, acquired, lost, renewed } = this.#deps;
    const sentAt = clock.mono();
    const leases = [...this.#owned.values()];
    const { nodes, owners, kept } = await membership.renew(node(), leases);
    for (const lease of leases) {
      const { shard, epoch } = lease;
      // It may have been taken anew meanwhile.
      if (this.#owned.get(shard) !== lease || kept.some((one) => one.shard === shard && one.epoch === epoch))
        continue;
      this.#forget(shard);
      lost(shard);
    }
    this.#isDraining = nodes.some((one) => one.id === node().id && one.isDraining);
    const taken = await this.#takeFree(owners);
    for (const lease of taken) acquired(lease);
    const own = taken.map((lease) => ({ ...lease, node: node().id }));
    const view = { nodes, owners: [...owners, ...own] };
    renewed(view, sentAt + leaseMs * (1 - MARGIN));
    this.#move(view);
  }

  /** Gives a shard up if it is the next one that moves. */
  #move(view: ClusterView): void {
    const { shards, release, logger } = this.#deps;
    const rules = { ...this.#deps, count: shards };
    const next = nextMove(view, rules);
    this.#isInMotion = next !== undefined || !isSettled(view, rules);
    if (next === undefined || !this.#owned.has(next) || this.#moving !== undefined) return;
    this.#moving = next;
    release(next)
      .then(() => this.give(next))
      .catch((cause: unknown) =>
        logger.warn("a shard could not be given up: its lease ends by itself", { shard: next, cause }),
      )
      .finally(() => {
        this.#moving = undefined;
        return this.renewNow();
      });
  }

  async #takeFree(owners: ClusterView["owners"]): Promise<readonly ShardLease[]> {
    const { membership, shards, clock, leaseMs, node } = this.#deps;
    const taken: ShardLease[] = [];
    const since = clock.mono() - leaseMs;
    for (let shard = 0; shard < shards && !this.#isDraining && !this.#isStopping; shard++) {
      if (this.#owned.has(shard) || owners.some((one) => one.shard === shard)) continue;
      if ((this.#lostAt.get(shard) ?? -Infinity) > since) continue;
      // oxlint-disable-next-line no-await-in-loop -- a node that starts beside this one gets some too
      const epoch = await membership.take(node().id, shard);
      if (epoch === undefined) continue;
      const lease = { shard, epoch };
      this.#owned.set(shard, lease);
      taken.push(lease);
    }
    return taken;
  }

  #forget(shard: number): void {
    this.#owned.delete(shard);
    this.#lostAt.set(shard, this.#deps.clock.mono());
  }
}
