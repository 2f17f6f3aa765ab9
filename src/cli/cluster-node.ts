import { hostname } from "node:os";
import { checkClusterSecret, deriveClusterKeys } from "../access/cluster-keys.ts";
import { type NodeAddress, nodeNameOf, parseNodeAddress, routesOf } from "../cluster/node-address.ts";
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
  readonly #children = new Map<number, ShardChild & { peer?: PeerAddress }>();
  #forwarding: ShardChild | undefined;
  #news: ClusterNews = { routes: [], validUntil: -Infinity };
  #url = "";
  #isOpen = false;
  #isStopping = false;

  private constructor(
    database: ClusterDatabase,
    options: NodeOptions,
    keys: ReturnType<typeof deriveClusterKeys>,
  ) {
    const { cluster, port, tokenSecret = keys.tokens, logger } = options;
    const { url, schema, leaseMs = DEFAULT_LEASE_MS, node: name = hostname(), host = options.host } = cluster;
    this.#database = database;
    this.#logger = logger;
    const key = Buffer.from(keys.connections).toString("hex");
    const place = { url, leaseMs, host, key, ...(schema !== undefined && { schema }) };
    this.#task = (number, epoch) => ({
      ...(number !== undefined && { number }),
      count: database.shards,
      port,
      tokenSecret,
      cluster: { ...place, epoch },
    });
    const id = `${name}/${Buffer.from(systemRandom().bytes(8)).toString("hex")}`;
    const address = (): NodeAddress => ({ url: this.#url, host, ports: this.#ports(), check: keys.check });
    this.#leases = new ShardLeases({
      membership: database.membership,
      shards: database.shards,
      leaseMs,
      clock: systemClock,
      scheduler: systemScheduler,
      logger,
      node: (): ClusterNode => ({ id, address: JSON.stringify(address()) }),
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
    // The secret is checked before the tables are made, because the number of shards in the tables can never change.
    checkClusterSecret(cluster.secret);
    const place = { ...cluster, ...(shards !== undefined && { shards }) };
    const database = await openClusterDatabase(place, { scheduler: systemScheduler });
    try {
      const keys = deriveClusterKeys(cluster.secret, database.id);
      const { nodes } = await database.membership.view();
      const stranger = nodes.find(({ address }) => parseNodeAddress(address).check !== keys.check);
      if (stranger !== undefined) {
        throw new ServiceError(
          "config.invalid",
          `The node ${nodeNameOf(stranger.id)} of this cluster has another secret: HEDDLE_CLUSTER_SECRET must be the same for all nodes. ` +
            "For a second cluster in the same database, set HEDDLE_CLUSTER_SCHEMA",
        );
      }
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

  /** Stops all processes, and gives up the leases of their shards. */
  async close(): Promise<void> {
    this.#isStopping = true;
    this.#leases.startDraining();
    const given = [...this.#children].map(async ([shard, { process }]) => {
      await stopShardProcess(process);
      await this.#leases.give(shard);
    });
    if (this.#forwarding !== undefined) given.push(stopShardProcess(this.#forwarding.process));
    const ended = await Promise.allSettled(given);
    await this.#leave();
    for (const end of ended) if (end.status === "rejected") throw end.reason;
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
   * Starts the process that serves a shard under a lease. `delay`: milliseconds before a restart if the process ends
   * early.
   */
  #serve({ shard, epoch }: ShardLease, delay: number): void {
    if (this.#isStopping) return;
    const since = systemClock.mono();
    const child: ShardChild & { peer?: PeerAddress } = startShardProcess(this.#task(shard, epoch));
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
      if (this.#children.get(shard) !== child || this.#isStopping) return;
      this.#children.delete(shard);
      if (!this.#isOpen) return;
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
    if (this.#children.size === 0 && this.#forwarding === undefined && !this.#isStopping) this.#forward();
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
