import { hostname } from "node:os";
import { checkClusterSecret, deriveClusterKeys } from "../access/cluster-keys.ts";
import {
  canAnotherNodeTakeShards,
  canTakeShards,
  checkSameSecret,
  isServed,
  type NodeAddress,
  routesOf,
} from "../cluster/node-address.ts";
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
import type { ClusterNews, ClusterDatabaseLocation } from "./cluster-network.ts";
import {
  FIRST_RESTART_DELAY_MS,
  nextRestartDelay,
  restartDelayAfterEnd,
  type ShardChild,
  type ShardTask,
  type StartedProcess,
  startShardProcess,
  stopShardProcess,
} from "./shard-processes.ts";

export interface ClusterSettings extends ClusterDatabaseLocation {
  /** The name of this node; absent: the host name of the machine. */
  readonly node?: string;
  /** The host at which the other nodes reach this one; absent: the host for clients. */
  readonly host?: string;
  /** The bytes of a shard's log after which a snapshot of the shard is made; absent: the default. */
  readonly snapshotBytes?: number;
  readonly secret: string;
}

interface NodeOptions {
  readonly cluster: ClusterSettings;
  /** The number of shards to create in a new cluster; absent: the cluster's existing or default number. */
  readonly shards: number | undefined;
  /** The host on which the server listens for clients. */
  readonly host: string;
  readonly port: number;
  readonly tokenSecret: string | undefined;
  /**
   * Checks that the data directory belongs to this cluster. Called with the cluster's id before anything is stored in
   * the directory.
   * @throws ServiceError `config.invalid` if the directory belongs to another cluster
   */
  checkData(cluster: string): void;
  readonly logger: Logger;
}

/** The process of a shard. */
type NodeChild = ShardChild & { peer?: PeerAddress; isReleased?: boolean };

/** The most milliseconds for which a node that stops hands over its shards one by one. */
const HAND_OVER_MS = 15_000;
/**
 * The most milliseconds that the stop of a node takes: then the node ends, even if some of its processes have
 * not ended.
 */
const STOP_MS = 25_000;
/** Milliseconds between two checks whether all shards are handed over. */
const HAND_OVER_LOOK_MS = 20;

/** Sends the routes, and the time until which the leases are valid, to a process, unless the process has ended. */
const send = ({ process }: ShardChild, news: ClusterNews): void => void process.send(news, () => undefined);

/** Addresses that mean "all addresses" of a machine, so other nodes cannot connect to them. */
const ANY_HOST: ReadonlySet<string> = new Set(["0.0.0.0", "::"]);

/**
 * A node of a cluster: it holds the leases of its shards, and starts a process for each of them. While it has no shard, one process forwards
 * requests to the nodes that have them.
 */
export class ClusterNodeProcesses {
  readonly #database: ClusterDatabase;
  readonly #logger: Logger;
  readonly #leases: ShardLeases;
  readonly #task: (shard: number | undefined, epoch: number) => ShardTask;
  readonly #children = new Map<number, NodeChild>();
  #forwarding: ShardChild | undefined;
  #news: ClusterNews = { routes: [], validUntil: -Infinity };
  readonly stopMs = STOP_MS;
  readonly #id: string;
  #url = "";
  /** True if another node can take shards. */
  #hasOthers = false;
  #isOpen = false;
  /** True from the call of {@link close}. No forwarding process is then started. */
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
    this.#logger = logger;
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
    const address = (): NodeAddress => ({ url: this.#url, host, ports: this.#ports(), check: keys.check });
    this.#leases = new ShardLeases({
      membership: database.membership,
      shards: database.shards,
      leaseMs,
      clock: systemClock,
      scheduler: systemScheduler,
      logger,
      node: (): ClusterNode => ({ id: this.#id, address: JSON.stringify(address()) }),
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
    if (ANY_HOST.has(cluster.host ?? options.host)) {
      throw new ServiceError(
        "config.invalid",
        "Name the host at which the other nodes of the cluster reach this one: HEDDLE_CLUSTER_HOST",
      );
    }
    // The secret is checked before the tables are made: if it were refused afterwards, the new tables would
    // already have their number of shards, which can never change.
    checkClusterSecret(cluster.secret);
    const place = { ...cluster, ...(shards !== undefined && { shards }) };
    const database = await openClusterDatabase(place, { scheduler: systemScheduler });
    try {
      const keys = deriveClusterKeys(cluster.secret, database.id);
      const { nodes } = await database.membership.view();
      checkSameSecret(nodes, keys.check);
      options.checkData(database.id);
      return new ClusterNodeProcesses(database, options, keys);
    } catch (error) {
      await database.close();
      throw error;
    }
  }

  /**
   * Joins the cluster, and starts the processes.
   * @throws ServiceError if a process fails; then all processes are ended
   */
  async start(): Promise<StartedProcess> {
    try {
      await this.#leases.start();
      const [first] = await Promise.all([...this.#all()].map(({ started }) => started));
      const started = first as StartedProcess;
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

  /** Hands over all shards, one after the other, if another node can take them. Then stops all processes. */
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
    if (this.#forwarding !== undefined) given.push(stopShardProcess(this.#forwarding.process));
    const ended = await Promise.allSettled(given);
    await this.#leave();
    for (const end of ended) if (end.status === "rejected") throw end.reason;
  }

  /** Waits until other nodes have taken all shards, for at most {@link HAND_OVER_MS}. The caller then gives up the remaining shards together. */
  async #handOver(): Promise<void> {
    const until = systemClock.mono() + HAND_OVER_MS;
    while (this.#leases.owned.length > 0 && this.#hasOthers && systemClock.mono() < until)
      // oxlint-disable-next-line no-await-in-loop -- it waits for the other nodes
      await new Promise<void>((resolve) => systemScheduler.after(HAND_OVER_LOOK_MS, resolve, true));
  }

  /** Stops the process of a shard before the shard is handed over. The next owner of the shard continues its runs. */
  async #release(shard: number): Promise<void> {
    const child = this.#children.get(shard);
    if (child === undefined) return;
    this.#logger.info("a shard is handed over", { shard });
    if (this.#children.size === 1 && this.#forwarding === undefined && !this.#isClosing) this.#forward();
    // If this is the node's last shard process, the forwarding process has to accept connections before it stops. If forwarding cannot
    // start, the shard is handed over all the same.
    await this.#forwarding?.started.catch(() => undefined);
    child.isReleased = true;
    await stopShardProcess(child.process, "hand over");
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
  }

  #ports(): NodeAddress["ports"] {
    return Object.fromEntries(
      [...this.#children].flatMap(([shard, { peer }]) =>
        peer !== undefined && "port" in peer ? [[shard, peer.port]] : [],
      ),
    );
  }

  /**
   * Starts the process that serves a shard under a lease. `delay`: milliseconds to wait before the process is
   * started again, if it ends soon after its start.
   */
  #serve({ shard, epoch }: ShardLease, delay: number): void {
    if (this.#isStopping) return;
    const since = systemClock.mono();
    const child: NodeChild = startShardProcess(this.#task(shard, epoch));
    this.#children.set(shard, child);
    send(child, this.#news);
    child.started.then(
      ({ peer }) => {
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
      this.#serveAgain(shard, restartDelayAfterEnd(since, delay));
    });
  }

  /**
   * Starts the process of a shard again after `delay` milliseconds, unless another node has taken the shard by then.
   */
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

  #renewed(view: ClusterView, validUntil: number): void {
    if (this.#children.size === 0 && this.#forwarding === undefined && !this.#isClosing) this.#forward();
    this.#hasOthers = canAnotherNodeTakeShards(view, this.#id);
    this.#news = { routes: routesOf(view), validUntil: machineTime() + validUntil - systemClock.mono() };
    for (const child of this.#all()) send(child, this.#news);
  }

  /** Starts the process that forwards requests. */
  #forward(): void {
    const child = startShardProcess(this.#task(undefined, 0));
    this.#forwarding = child;
    child.started.catch((cause: unknown) => {
      if (this.#isOpen && !this.#isStopping)
        this.#logger.error("the process that forwards requests could not be started", { cause });
    });
    child.process.once("exit", () => (this.#forwarding = undefined));
  }
}
