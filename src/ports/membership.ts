/** A node of a cluster: one server, which can own several shards. */
export interface ClusterNode {
  /** The id of the node. The node gets a new id each time it is started. */
  readonly id: string;
  /** What the node publishes about itself, such as the address at which other nodes reach it. This port only stores the text. */
  readonly address: string;
}

/** A living node of a cluster: its registration has not ended. */
export interface ClusterMember extends ClusterNode {
  /** True: the node gives up its shards, and takes no further shards. */
  readonly isDraining: boolean;
}

/** A shard that a node owns. */
export interface ShardLease {
  readonly shard: number;
  /**
   * The number of the lease. It is higher than the number of every earlier lease of the shard. The log of the shard refuses writes with an
   * older number.
   */
  readonly epoch: number;
}

/** The state of a cluster at one moment. */
export interface ClusterView {
  /** The living nodes, in the order of their ids. */
  readonly nodes: readonly ClusterMember[];
  /** The leases that have not ended, in the order of the shards, each with the id of the node that holds it. */
  readonly owners: readonly (ShardLease & { readonly node: string })[];
}

/** The state of a cluster right after a node has renewed its registration and its leases. */
export interface RenewedView extends ClusterView {
  /** The leases that the node still has. A lease that is missing here was given up, or its shard has a newer lease. */
  readonly kept: readonly ShardLease[];
}

/**
 * Which nodes live, and which shards they own. Time is measured only by the clock of the database behind this port, never by the clock of a
 * node. A node that has not renewed its registration for the length of a lease no longer counts as living, and its shards can be taken.
 *
 * Taking a shard gives it a new epoch in the log of shards (`shard-log.ts`), which from then on refuses the appends of every earlier owner.
 * So two nodes can believe for a moment that they own a shard, but only one can write.
 *
 * Every failure MUST be a ServiceError `storage.unavailable`. Then it is unknown whether the call had an effect.
 */
export interface Membership {
  /** Returns the state of the cluster, and changes nothing. */
  view(): Promise<ClusterView>;
  /**
   * Registers a node, or extends its registration, and extends the given leases of the node. The registration and all
   * these leases then end at the same time. A lease that has ended is extended too if nobody has taken the shard. MUST
   * be one step: if each shard took a step of its own, some leases could end while the node is still renewing the
   * others.
   */
  renew(node: ClusterNode, leases: readonly ShardLease[]): Promise<RenewedView>;
  /**
   * Takes a shard that has no owner, or whose lease has ended, or that the node itself owns. Returns the shard's new
   * epoch, or undefined if another node owns the shard. MUST give a shard to one node only, however many nodes ask at
   * once.
   */
  take(node: string, shard: number): Promise<number | undefined>;
  /** Ends a lease. Does nothing if the node does not hold this lease any more. */
  give(node: string, lease: ShardLease): Promise<void>;
  /**
   * Sets whether a node has to give up its shards. The setting holds until the next call for the node, or until the
   * node leaves; at first, a node may keep its shards. Returns false if no living node has this id.
   */
  setDraining(node: string, isDraining: boolean): Promise<boolean>;
  /** Removes a node, and ends its leases. */
  leave(node: string): Promise<void>;
}
