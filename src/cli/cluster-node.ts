import { hostname } from "node:os";
import { checkClusterSecret, deriveClusterKeys } from "../access/cluster-keys.ts";
import { isLoopback } from "../access/hosts.ts";
import {
  canAnotherNodeTakeShards,
  canTakeShards,
  checkSameSecret,
  isPrepared,
  isServed,
  type ClusterNodeInfo,
  nodeNameOf,
  parseClusterNodeInfo,
  shardAddressesOf,
} from "../cluster/cluster-node-info.ts";
import { ShardLeases } from "../cluster/shard-leases.ts";
import { followedShards } from "../cluster/shard-placement.ts";
import { ServiceError } from "../model/errors.ts";
import { systemClock } from "../platform/clock.ts";
import { machineTime } from "../platform/machine-time.ts";
import { systemRandom } from "../platform/random.ts";
import { systemScheduler } from "../platform/scheduler.ts";
import type { Logger } from "../ports/logger.ts";
import type { ClusterNode, ClusterView, ShardLease } from "../ports/membership.ts";
import type { PeerAddress } from "../ports/peers.ts";
import {
  type ClusterDatabase,
  DEFAULT_LEASE_MS,
  openOrCreateClusterDatabase,
} from "../postgres/cluster-database.ts";
import type { ClusterUpdate, ClusterDatabaseLocation } from "./cluster-child.ts";
import {
  FIRST_RESTART_DELAY_MS,
  type HangLimits,
  ChildProcessWatchdogs,
  nextRestartDelay,
  restartDelayAfterEnd,
  type ShardChild,
  type ShardTask,
  type ReadyMessage,
  startShardProcess,
  hasEnded,
  releaseShardOf,
  stopShardProcess,
} from "./shard-processes.ts";
import { openShardCopy } from "../storage/open-shard-copy.ts";
import { shardDirectory } from "./shard-directories.ts";
import { ShardFollowers } from "./shard-followers.ts";
import { StandbyProcess } from "./standby-process.ts";

export interface ClusterSettings extends ClusterDatabaseLocation {
  /** The name of this node. Absent: the host name of the machine. */
  readonly node?: string;
  /** The host at which the other nodes reach this node. Absent: the host for clients. */
  readonly host?: string;
  /** When a shard's log has grown by this many bytes, a snapshot of the shard is made. Absent: the default. */
  readonly snapshotBytes?: number;
  readonly secret: string;
}

interface NodeOptions extends HangLimits {
  readonly cluster: ClusterSettings;
  /** The number of shards of a new cluster. Undefined: the number that an existing cluster has, or the default. */
  readonly shards: number | undefined;
  /** The host on which the server listens for clients. */
  readonly host: string;
  readonly port: number;
  readonly tokenSecret: string | undefined;
  /** The data directory. */
  readonly data: string;
  /** The id of the cluster to which the data directory belongs; undefined if it is new. A node with data makes no new cluster. */
  readonly storedCluster: string | undefined;
  /**
   * Checks that the data directory belongs to this cluster. Called with the cluster's id before anything is stored in
   * the directory.
   * @throws ServiceError `config.invalid` if the directory belongs to another cluster
   */
  checkData(cluster: string): void;
  readonly logger: Logger;
}

/** The process of one shard, with the address at which other nodes reach it. `isReleased`: it was stopped to hand over its shard. */
type NodeChild = ShardChild & { peer?: PeerAddress; isReleased?: boolean };

/** The longest time in which a node that stops hands over its shards one by one, in milliseconds. */
const HAND_OVER_MS = 15_000;
/** The longest time that the stop of a node takes, in milliseconds. Then the node ends, even if some of its processes have not ended. */
const STOP_MS = 25_000;
/**
 * When a process that has never been ready ends, and its next start would follow after this delay in milliseconds or a longer one, its shard
 * is given up: that is the fifth start in about ten seconds.
 */
const LAST_START_DELAY_MS = 4_000;
/** Milliseconds for which a node does not take a shard again whose process it could not start. */
const UNABLE_MS = 60_000;
/** Milliseconds between two checks whether all shards are handed over. */
const HAND_OVER_LOOK_MS = 20;

/** Sends the routes and the end of the leases to a process. An error is ignored: the process has ended. */
const send = ({ process }: ShardChild, update: ClusterUpdate): void =>
  void process.send(update, () => undefined);

/** Addresses that mean "all addresses of this machine". Other nodes cannot connect to them. */
const ANY_HOST: ReadonlySet<string> = new Set(["0.0.0.0", "::"]);

/**
 * Checks that the processes of this node can listen at the host at which other nodes reach them. Without this check, a node without shards
 * would join the cluster, and then take shards that its processes cannot serve.
 * @throws ServiceError `config.invalid`
 */
async function checkClusterHost(host: string): Promise<void> {
  const name = "Name the host at which the other nodes of the cluster reach this one: HEDDLE_CLUSTER_HOST";
  if (ANY_HOST.has(host)) throw new ServiceError("config.invalid", name);
  const { claimPort } = await import("../app.ts");
  try {
    await claimPort(host, 0);
  } catch (cause) {
    const reason = (cause as Error).message;
    throw new ServiceError("config.invalid", `${host} is no address of this machine: ${reason}. ${name}`, {
      cause,
    });
  }
}

/**
 * Checks that either all nodes are reached at loopback addresses, or none. Otherwise, a node on another machine would take shards that the
 * other nodes cannot reach.
 * @throws ServiceError `config.invalid`
 */
function checkReachableHosts(nodes: readonly ClusterNode[], host: string): void {
  for (const { id, address } of nodes) {
    const { host: other } = parseClusterNodeInfo(address);
    if (isLoopback(other) === isLoopback(host)) continue;
    throw new ServiceError(
      "config.invalid",
      `The node ${nodeNameOf(id)} of this cluster is reached at ${other}, and this one at ${host}: an address of loopback is reached only ` +
        "from the same machine. Name for each node the host at which the others reach it: HEDDLE_CLUSTER_HOST",
    );
  }
}

/**
 * A node of a cluster. It holds the leases of its shards, and starts a process for each of these shards. While the node has no shard, it
 * has one process that forwards requests to the nodes that have shards.
 */
export class ClusterNodeProcesses {
  readonly #database: ClusterDatabase;
  readonly #logger: Logger;
  readonly #watchdogs: ChildProcessWatchdogs;
  readonly #leases: ShardLeases;
  readonly #task: (shard: number | undefined, epoch: number | undefined) => ShardTask;
  readonly #children = new Map<number, NodeChild>();
  readonly #standby: StandbyProcess;
  readonly #followers: ShardFollowers;
  /** The shard which moves to this node; undefined if there is none. */
  #preparing: number | undefined;
  #forwardingProcess: ShardChild | undefined;
  /** Processes that have given their shards up, and still forward requests of their clients. */
  readonly #released = new Set<ShardChild>();
  #update: ClusterUpdate = { routes: [], validUntil: -Infinity };
  readonly stopMs = STOP_MS;
  readonly #id: string;
  #url = "";
  /** Since when another node has had the name of this node, in milliseconds of the monotonic clock. */
  #twinSince: number | undefined;
  #hasWarnedOfTwin = false;
  readonly #leaseMs: number;
  /** True if another node can take shards. */
  #hasOthers = false;
  #isOpen = false;
  /** True once {@link close} was called. From then on, no forwarding process is started. */
  #isClosing = false;
  #isStopping = false;

  private constructor(
    database: ClusterDatabase,
    options: NodeOptions,
    keys: ReturnType<typeof deriveClusterKeys>,
  ) {
    const { cluster, data, port, tokenSecret = keys.tokens, logger } = options;
    const { url, schema, leaseMs = DEFAULT_LEASE_MS, node: name = hostname(), host = options.host } = cluster;
    const { snapshotBytes } = cluster;
    this.#database = database;
    this.#leaseMs = leaseMs;
    this.#logger = logger;
    this.#watchdogs = new ChildProcessWatchdogs(options);
    const key = Buffer.from(keys.connections).toString("hex");
    const place = {
      url,
      leaseMs,
      node: name,
      host,
      key,
      ...(schema !== undefined && { schema }),
      ...(snapshotBytes !== undefined && { snapshotBytes }),
    };
    this.#task = (number, epoch) => ({
      ...(number !== undefined && { number }),
      count: database.shards,
      port,
      tokenSecret,
      cluster: { ...place, ...(epoch !== undefined && { epoch }) },
    });
    this.#followers = new ShardFollowers({
      log: database.log,
      store: database.snapshots,
      scheduler: systemScheduler,
      logger,
      open: (shard) => openShardCopy(shardDirectory(data, shard)),
    });
    this.#standby = new StandbyProcess({
      scheduler: systemScheduler,
      logger,
      start: (shard) => {
        const child = startShardProcess(this.#task(shard, undefined), this.#watchdogs);
        send(child, this.#update);
        return child;
      },
      onPrepared: () => void this.#leases.renewNow(),
    });
    this.#id = `${name}/${Buffer.from(systemRandom().bytes(8)).toString("hex")}`;
    const info = (): ClusterNodeInfo => ({
      url: this.#url,
      host,
      ports: this.#ports(),
      followed: this.#followers.positions,
      prepared: this.#standby.prepared,
      check: keys.check,
    });
    this.#leases = new ShardLeases({
      membership: database.membership,
      shards: database.shards,
      leaseMs,
      clock: systemClock,
      scheduler: systemScheduler,
      logger,
      node: (): ClusterNode => ({ id: this.#id, address: JSON.stringify(info()) }),
      canTakeShards,
      isServed,
      isPrepared,
      prepare: (shard) => this.#prepare(shard),
      release: (shard) => this.#release(shard),
      acquired: (lease) => this.#serve(lease, FIRST_RESTART_DELAY_MS),
      lost: (shard) => this.#lose(shard),
      renewed: (view, validUntil) => this.#renewed(view, validUntil),
    });
  }

  /**
   * Opens the cluster's database, and checks that this node may join the cluster.
   * @throws ServiceError `config.invalid`, `storage.unavailable`, `storage.version`
   */
  static async open(options: NodeOptions): Promise<ClusterNodeProcesses> {
    const { cluster, shards } = options;
    await checkClusterHost(cluster.host ?? options.host);
    // The secret is checked before the tables are created, because new tables fix the number of shards for good.
    checkClusterSecret(cluster.secret);
    const { storedCluster } = options;
    const place = {
      ...cluster,
      ...(shards !== undefined && { shards }),
      ...(storedCluster !== undefined && { storedCluster }),
    };
    const database = await openOrCreateClusterDatabase(place, { scheduler: systemScheduler });
    try {
      const keys = deriveClusterKeys(cluster.secret, database.id);
      const { nodes } = await database.membership.view();
      checkSameSecret(nodes, keys.check);
      checkReachableHosts(nodes, cluster.host ?? options.host);
      options.checkData(database.id);
      return new ClusterNodeProcesses(database, options, keys);
    } catch (error) {
      await database.close();
      throw error;
    }
  }

  /**
   * Joins the cluster, and starts the processes. Resolves when all have started, with the report of one of them.
   * @throws the error of a process that could not start; all processes are then ended
   */
  async start(): Promise<ReadyMessage> {
    try {
      await this.#leases.start();
      const [first] = await Promise.all([...this.#all()].map(({ started }) => started));
      const started = first as ReadyMessage;
      this.#url = started.url;
      this.#isOpen = true;
      await this.#leases.renewNow();
      return started;
    } catch (cause) {
      this.#isStopping = true;
      for (const { process } of this.#all()) process.kill("SIGKILL");
      await this.#leave();
      throw cause;
    }
  }

  /**
   * Stops the node. If another node can take shards, all shards are handed over first, one after the other. The remaining processes are
   * then stopped together.
   */
  async close(): Promise<void> {
    this.#isClosing = true;
    this.#standby.prepare(undefined);
    const followersEnded = this.#followers.close();
    try {
      await this.#leases.startStopping();
      await this.#handOver();
    } catch (cause) {
      this.#logger.warn("the shards of this node could not be handed over one by one", { cause });
    }
    this.#isStopping = true;
    const given = [...this.#children].map(async ([shard, { process }]) => {
      await stopShardProcess(process);
      // If this fails, `#leave` gives the shard up, or warns that its lease ends by itself.
      await this.#leases.give(shard).catch(() => undefined);
    });
    const others = [
      ...this.#released,
      ...(this.#forwardingProcess === undefined ? [] : [this.#forwardingProcess]),
    ];
    given.push(...others.map(({ process }) => stopShardProcess(process)));
    given.push(followersEnded);
    await Promise.all(given);
    await this.#leave();
  }

  /** Waits until other nodes have taken all shards of this node, for at most {@link HAND_OVER_MS}. */
  async #handOver(): Promise<void> {
    const until = systemClock.mono() + HAND_OVER_MS;
    while (this.#leases.owned.length > 0 && this.#hasOthers && systemClock.mono() < until)
      // oxlint-disable-next-line no-await-in-loop -- it waits for the other nodes
      await new Promise<void>((resolve) => systemScheduler.after(HAND_OVER_LOOK_MS, resolve, true));
  }

  /**
   * Makes the process of a shard give it up, so that the shard can be handed over. The shard's next owner continues its runs. The process
   * goes on while clients are connected with it for other shards.
   */
  async #release(shard: number): Promise<void> {
    const child = this.#children.get(shard);
    if (child === undefined) return;
    this.#logger.info("a shard is handed over", { shard });
    if (this.#children.size === 1 && this.#forwardingProcess === undefined && !this.#isClosing)
      this.#startForwarding();
    // A forwarding process has to accept connections before the node's last shard process stops. If it cannot start, the shard is handed
    // over anyway.
    await this.#forwardingProcess?.started.catch(() => undefined);
    child.isReleased = true;
    await releaseShardOf(child.process);
    if (this.#children.get(shard) === child) this.#children.delete(shard);
    if (hasEnded(child.process)) return;
    this.#released.add(child);
    child.process.once("exit", () => this.#released.delete(child));
  }

  async #leave(): Promise<void> {
    try {
      await this.#leases.stop();
    } catch (cause) {
      this.#logger.warn("the node could not leave the cluster: its leases end by themselves", { cause });
    } finally {
      await this.#database.close();
    }
  }

  *#all(): Generator<ShardChild> {
    yield* this.#children.values();
    if (this.#forwardingProcess !== undefined) yield this.#forwardingProcess;
    if (this.#standby.child !== undefined) yield this.#standby.child;
    yield* this.#released;
  }

  #ports(): ClusterNodeInfo["ports"] {
    return Object.fromEntries(
      [...this.#children].flatMap(([shard, { peer }]) =>
        peer !== undefined && "port" in peer ? [[shard, peer.port]] : [],
      ),
    );
  }

  /** Prepares to serve a shard which moves to this node; undefined: prepares for none. */
  #prepare(shard: number | undefined): void {
    if (this.#isClosing || this.#isStopping) return this.#standby.prepare(undefined);
    this.#preparing = shard;
    // The process for the shard needs the database that the follower has open. The next call comes soon, because a shard is on the move.
    if (shard !== undefined && this.#followers.stop(shard) !== undefined) return;
    this.#standby.prepare(shard);
  }

  /** Starts to serve a shard under a lease, once this node does not follow the shard any more. */
  #serve(lease: ShardLease, delay: number): void {
    const ended = this.#followers.stop(lease.shard);
    if (ended === undefined) this.#startServing(lease, delay);
    else void ended.then(() => this.#startServing(lease, delay));
  }

  /** Starts the process that serves a shard under a lease. `delay`: the milliseconds before the next start if this process ends early. */
  #startServing({ shard, epoch }: ShardLease, delay: number): void {
    if (this.#isStopping) return;
    let readyAt: number | undefined;
    const child: NodeChild =
      this.#standby.serve({ shard, epoch }) ?? startShardProcess(this.#task(shard, epoch), this.#watchdogs);
    this.#children.set(shard, child);
    send(child, this.#update);
    child.started.then(
      ({ peer }) => {
        readyAt = systemClock.mono();
        if (peer !== undefined) child.peer = peer;
        if (!this.#isOpen) return;
        this.#logger.info("a shard is served by this node", { shard });
        void this.#leases.renewNow();
      },
      (cause: unknown) => {
        if (this.#isOpen && !this.#isStopping)
          this.#logger.error("the process of a shard could not be started", { shard, cause });
      },
    );
    child.process.once("exit", (code, signal) => {
      if (this.#children.get(shard) !== child) return;
      this.#children.delete(shard);
      if (this.#isStopping || child.isReleased === true) return;
      // While the node starts, the end of a process may make the start fail. If it does not, for example because the process ended after
      // its own start, the shard needs a new process.
      if (this.#isOpen) this.#logger.error("the process of a shard ended", { shard, code, signal });
      if (readyAt === undefined && delay >= LAST_START_DELAY_MS && this.#hasOthers) this.#giveUp(shard);
      else this.#serveAgain(shard, restartDelayAfterEnd(readyAt, delay));
    });
  }

  /** Gives up a shard whose process cannot be started on this node, so that another node serves it. */
  #giveUp(shard: number): void {
    this.#logger.error("a shard cannot be served by this node, and is given up", { shard });
    this.#leases.give(shard, UNABLE_MS).catch((cause: unknown) => {
      this.#logger.warn("a shard could not be given up: its lease ends by itself", { shard, cause });
    });
  }

  /** After `delay` milliseconds, starts the process of a shard again, unless another node has taken the shard by then. */
  #serveAgain(shard: number, delay: number): void {
    systemScheduler.after(delay, () => {
      if (this.#isStopping || this.#children.has(shard)) return;
      this.#leases.retake(shard).then(
        (lease) => lease && this.#serve(lease, nextRestartDelay(delay)),
        (cause: unknown) => {
          this.#logger.error("the shard could not be taken again", { shard, cause });
          this.#serveAgain(shard, nextRestartDelay(delay));
        },
      );
    });
  }

  #lose(shard: number): void {
    const child = this.#children.get(shard);
    this.#children.delete(shard);
    child?.process.kill("SIGKILL");
    this.#logger.warn("another node has taken a shard over", { shard });
  }

  /**
   * Warns if another living node has the name of this node. A node that was killed and started again is a member twice until the lease of
   * its former process ends, so only a longer time counts.
   */
  #checkName({ nodes }: ClusterView): void {
    const node = nodeNameOf(this.#id);
    const twin = nodes.find(({ id }) => id !== this.#id && nodeNameOf(id) === node);
    if (twin === undefined) {
      this.#twinSince = undefined;
      return;
    }
    this.#twinSince ??= systemClock.mono();
    if (this.#hasWarnedOfTwin || systemClock.mono() - this.#twinSince <= this.#leaseMs) return;
    this.#hasWarnedOfTwin = true;
    this.#logger.warn(
      "another node of the cluster has the same name: start each node with a name of its own, with --node",
      {
        node,
        other: parseClusterNodeInfo(twin.address).url,
      },
    );
  }

  #renewed(view: ClusterView, validUntil: number): void {
    this.#checkName(view);
    if (this.#children.size === 0 && this.#forwardingProcess === undefined && !this.#isClosing)
      this.#startForwarding();
    this.#hasOthers = canAnotherNodeTakeShards(view, this.#id);
    this.#update = {
      routes: shardAddressesOf(view),
      validUntil: machineTime() + validUntil - systemClock.mono(),
    };
    for (const child of this.#all()) send(child, this.#update);
    this.#follow(view);
  }

  /** Follows the shards that this node should take if their owners died. */
  #follow(view: ClusterView): void {
    if (!this.#isOpen || this.#isClosing || this.#isStopping) return;
    const free = new Set(this.#followers.shards);
    for (const { shard } of view.owners) free.delete(shard);
    // A shard without an owner may be taken by this node next.
    const followed = [...followedShards(view, this.#id, canTakeShards), ...free];
    this.#followers.follow(followed.filter((shard) => shard !== this.#preparing));
  }

  /** Starts the process that forwards requests to the nodes that have shards. */
  #startForwarding(): void {
    const child = startShardProcess(this.#task(undefined, 0), this.#watchdogs);
    this.#forwardingProcess = child;
    child.started.catch((cause: unknown) => {
      if (this.#isOpen && !this.#isStopping)
        this.#logger.error("the process that forwards requests could not be started", { cause });
    });
    child.process.once("exit", () => (this.#forwardingProcess = undefined));
  }
}
