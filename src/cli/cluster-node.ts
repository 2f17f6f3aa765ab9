import { hostname } from "node:os";
import { checkClusterSecret, deriveClusterKeys } from "../access/cluster-keys.ts";
import { isLoopback } from "../access/hosts.ts";
import {
  canAnotherNodeTakeShards,
  canTakeShards,
  checkSameSecret,
  isServed,
  type ClusterNodeInfo,
  nodeNameOf,
  parseClusterNodeInfo,
  shardAddressesOf,
} from "../cluster/cluster-node-info.ts";
import { ShardLeases } from "../cluster/shard-leases.ts";
import { ServiceError } from "../model/errors.ts";
import { systemClock } from "../platform/clock.ts";
import { machineTime } from "../platform/machine-time.ts";
import { systemRandom } from "../platform/random.ts";
import { systemScheduler } from "../platform/scheduler.ts";
import type { Logger } from "../ports/logger.ts";
import type { ClusterNode, ClusterView, ShardLease } from "../ports/membership.ts";
import type { PeerAddress } from "../ports/peers.ts";
import { type ClusterDatabase, DEFAULT_LEASE_MS, openClusterDatabase } from "../postgres/cluster-database.ts";
import type { ClusterUpdate, ClusterDatabaseLocation } from "./cluster-child.ts";
import {
  FIRST_RESTART_DELAY_MS,
  type HangLimits,
  ProcessWatchdogs,
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
/** Milliseconds between two checks whether all shards are handed over. */
const HAND_OVER_LOOK_MS = 20;

/** Sends the routes and the end of the leases to a process. An error is ignored: the process has ended. */
const send = ({ process }: ShardChild, news: ClusterUpdate): void => void process.send(news, () => undefined);

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
  readonly #watchdogs: ProcessWatchdogs;
  readonly #leases: ShardLeases;
  readonly #task: (shard: number | undefined, epoch: number) => ShardTask;
  readonly #children = new Map<number, NodeChild>();
  #forwarding: ShardChild | undefined;
  /** Processes that have given their shards up, and still forward requests of their clients. */
  readonly #released = new Set<ShardChild>();
  #news: ClusterUpdate = { routes: [], validUntil: -Infinity };
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
    const { cluster, port, tokenSecret = keys.tokens, logger } = options;
    const { url, schema, leaseMs = DEFAULT_LEASE_MS, node: name = hostname(), host = options.host } = cluster;
    const { snapshotBytes } = cluster;
    this.#database = database;
    this.#leaseMs = leaseMs;
    this.#logger = logger;
    this.#watchdogs = new ProcessWatchdogs(options);
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
      cluster: { ...place, epoch },
    });
    this.#id = `${name}/${Buffer.from(systemRandom().bytes(8)).toString("hex")}`;
    const info = (): ClusterNodeInfo => ({ url: this.#url, host, ports: this.#ports(), check: keys.check });
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
    const database = await openClusterDatabase(place, { scheduler: systemScheduler });
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
    try {
      await this.#leases.startStopping();
      await this.#handOver();
    } catch (cause) {
      this.#logger.warn("the shards of this node could not be handed over one by one", { cause });
    }
    this.#isStopping = true;
    const given = [...this.#children].map(async ([shard, { process }]) => {
      await stopShardProcess(process);
      await this.#leases.give(shard);
    });
    const others = [...this.#released, ...(this.#forwarding === undefined ? [] : [this.#forwarding])];
    given.push(...others.map(({ process }) => stopShardProcess(process)));
    const ended = await Promise.allSettled(given);
    await this.#leave();
    for (const end of ended) if (end.status === "rejected") throw end.reason;
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
    if (this.#children.size === 1 && this.#forwarding === undefined && !this.#isClosing) this.#forward();
    // A forwarding process has to accept connections before the node's last shard process stops. If it cannot start, the shard is handed
    // over anyway.
    await this.#forwarding?.started.catch(() => undefined);
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
    if (this.#forwarding !== undefined) yield this.#forwarding;
    yield* this.#released;
  }

  #ports(): ClusterNodeInfo["ports"] {
    return Object.fromEntries(
      [...this.#children].flatMap(([shard, { peer }]) =>
        peer !== undefined && "port" in peer ? [[shard, peer.port]] : [],
      ),
    );
  }

  /** Starts the process that serves a shard under a lease. `delay`: the milliseconds before the next start if this process ends early. */
  #serve({ shard, epoch }: ShardLease, delay: number): void {
    if (this.#isStopping) return;
    let readyAt: number | undefined;
    const child: NodeChild = startShardProcess(this.#task(shard, epoch), this.#watchdogs);
    this.#children.set(shard, child);
    send(child, this.#news);
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
      if (!this.#isOpen || this.#isStopping || child.isReleased === true) return;
      this.#logger.error("the process of a shard ended", { shard, code, signal });
      this.#serveAgain(shard, restartDelayAfterEnd(readyAt, delay));
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
    if (this.#children.size === 0 && this.#forwarding === undefined && !this.#isClosing) this.#forward();
    this.#hasOthers = canAnotherNodeTakeShards(view, this.#id);
    this.#news = {
      routes: shardAddressesOf(view),
      validUntil: machineTime() + validUntil - systemClock.mono(),
    };
    for (const child of this.#all()) send(child, this.#news);
  }

  /** Starts the process that forwards requests to the nodes that have shards. */
  #forward(): void {
    const child = startShardProcess(this.#task(undefined, 0), this.#watchdogs);
    this.#forwarding = child;
    child.started.catch((cause: unknown) => {
      if (this.#isOpen && !this.#isStopping)
        this.#logger.error("the process that forwards requests could not be started", { cause });
    });
    child.process.once("exit", () => (this.#forwarding = undefined));
  }
}
