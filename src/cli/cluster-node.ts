import { hostname } from "node:os";
import { checkClusterSecret, deriveClusterKeys } from "../access/cluster-keys.ts";
import {
  canAnotherNodeTakeShards,
  canTakeShards,
  checkSameSecret,
  isPrepared,
  isServed,
  type ClusterNodeInfo,
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
const send = ({ process }: ShardChild, update: ClusterUpdate): void =>
  void process.send(update, () => undefined);

/** Addresses that mean "all addresses of this machine". Other nodes cannot connect to them. */
const ANY_HOST: ReadonlySet<string> = new Set(["0.0.0.0", "::"]);

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
  #forwardingProcess: ShardChild | undefined;
  /** Processes that have given their shards up, and still forward requests of their clients. */
  readonly #released = new Set<ShardChild>();
  #update: ClusterUpdate = { routes: [], validUntil: -Infinity };
  readonly stopMs = STOP_MS;
  readonly #id: string;
  #url = "";
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
      prepare: (shard) => this.#standby.prepare(this.#isClosing || this.#isStopping ? undefined : shard),
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
    // The secret is checked before the tables are created, because new tables fix the number of shards for good.
    checkClusterSecret(cluster.secret);
    const place = { ...cluster, ...(shards !== undefined && { shards }) };
    const database = await openOrCreateClusterDatabase(place, { scheduler: systemScheduler });
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
    const others = [
      ...this.#released,
      ...(this.#forwardingProcess === undefined ? [] : [this.#forwardingProcess]),
    ];
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

  /** Starts the process that serves a shard under a lease. `delay`: the milliseconds before the next start if this process ends early. */
  #serve({ shard, epoch }: ShardLease, delay: number): void {
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

  #renewed(view: ClusterView, validUntil: number): void {
    if (this.#children.size === 0 && this.#forwardingProcess === undefined && !this.#isClosing)
      this.#startForwarding();
    this.#hasOthers = canAnotherNodeTakeShards(view, this.#id);
    this.#update = {
      routes: shardAddressesOf(view),
      validUntil: machineTime() + validUntil - systemClock.mono(),
    };
    for (const child of this.#all()) send(child, this.#update);
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
