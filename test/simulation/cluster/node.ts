import {
  canAnotherNodeTakeShards,
  canTakeShards,
  type ClusterNodeInfo,
  isPrepared,
  isServed,
  shardAddressesOf,
} from "../../../src/cluster/cluster-node-info.ts";
import { ShardLeases } from "../../../src/cluster/shard-leases.ts";
import { silentLogger } from "../../../src/platform/log.ts";
import type { ClusterView, ShardLease } from "../../../src/ports/membership.ts";
import type { PeerAddress } from "../../../src/ports/peers.ts";
import { deferred } from "./deferred.ts";
import { type Machine, ProcessScheduler } from "./machine.ts";
import type { ShardDisk } from "./shard-disk.ts";
import { type ClusterParts, ShardProcess } from "./shard-process.ts";

const FIRST_RESTART_DELAY_MS = 100;
const LONGEST_RESTART_DELAY_MS = 2_000;
/** The longest time in milliseconds in which a node that stops hands over its shards one by one. */
const HAND_OVER_MS = 8_000;
/** The longest time in milliseconds that the processes of a node that stops take to end. */
const STOP_MS = 12_000;
const HAND_OVER_LOOK_MS = 20;

/** A process that prepares to serve a shard. */
interface Standby {
  readonly shard: number;
  readonly process: ShardProcess;
  isPrepared: boolean;
  own(epoch: number): void;
}

/** A node of the cluster: what `src/cli/cluster-node.ts` does with real processes. */
export class SimulatedNode {
  readonly machine: Machine;
  readonly id: string;
  readonly #parts: ClusterParts;
  readonly #scheduler: ProcessScheduler;
  readonly #disks: (shard: number) => ShardDisk;
  readonly #leases: ShardLeases;
  readonly #children = new Map<number, ShardProcess>();
  readonly #released = new Set<ShardProcess>();
  #forwarding: ShardProcess | undefined;
  #standby: Standby | undefined;
  #view: ClusterView = { nodes: [], owners: [] };
  #update: { readonly routes: ReadonlyMap<number, PeerAddress>; readonly validUntil: number } = {
    routes: new Map(),
    validUntil: -Infinity,
  };
  #isOpen = false;
  #isClosing = false;
  #isStopping = false;

  /** `disks`: returns the directory of a shard on the machine. */
  constructor(machine: Machine, parts: ClusterParts, disks: (shard: number) => ShardDisk) {
    this.machine = machine;
    this.#parts = parts;
    this.#disks = disks;
    const scheduler = new ProcessScheduler(machine);
    this.#scheduler = scheduler;
    this.id = `${machine.name}/${Buffer.from(machine.universe.random.bytes(4)).toString("hex")}`;
    const info = (): ClusterNodeInfo => ({
      url: this.#isOpen ? `http://${machine.name}` : "",
      host: machine.name,
      ports: Object.fromEntries(
        [...this.#children].flatMap(([shard, child]) => (child.isListening ? [[shard, child.port]] : [])),
      ),
      prepared: this.#standby?.isPrepared === true ? [this.#standby.shard] : [],
      check: "",
    });
    this.#leases = new ShardLeases({
      membership: parts.engine.linkOf(scheduler).membership,
      shards: parts.shards,
      leaseMs: parts.leaseMs,
      clock: machine,
      scheduler,
      logger: silentLogger,
      node: () => ({ id: this.id, address: JSON.stringify(info()) }),
      canTakeShards,
      isServed,
      isPrepared,
      prepare: (shard) => this.#prepare(this.#isClosing || this.#isStopping ? undefined : shard),
      release: (shard) => this.#release(shard),
      acquired: (lease) => this.#serve(lease, FIRST_RESTART_DELAY_MS),
      lost: (shard) => this.#lose(shard),
      renewed: (view, validUntil) => this.#renewed(view, validUntil),
    });
  }

  get isDead(): boolean {
    return this.#scheduler.isDead;
  }

  /** Whether the node accepts requests of clients. */
  get isOpen(): boolean {
    return this.#isOpen && !this.isDead;
  }

  /** The view of the last renewal. */
  get view(): ClusterView {
    return this.#view;
  }

  /** The processes that accept connections of clients. */
  get listening(): readonly ShardProcess[] {
    const all =
      this.#forwarding === undefined
        ? this.#children.values()
        : [...this.#children.values(), this.#forwarding];
    return [...all].filter((one) => one.isListening && !one.isReleased && !one.scheduler.isDead);
  }

  /** Joins the cluster, and starts the processes. If that fails, the node ends. */
  async start(): Promise<void> {
    try {
      await this.#leases.start();
      await Promise.all([...this.#all()].map(({ started }) => started));
      this.#isOpen = true;
      await this.#leases.renewNow();
    } catch {
      this.#isStopping = true;
      await this.#leave();
    }
  }

  /** Stops the node in an orderly way: its shards are handed over first. */
  async close(): Promise<void> {
    this.#isClosing = true;
    this.#prepare(undefined);
    try {
      await this.#leases.startStopping();
      const until = this.machine.mono() + HAND_OVER_MS;
      while (
        this.#leases.owned.length > 0 &&
        canAnotherNodeTakeShards(this.#view, this.id) &&
        this.machine.mono() < until
      )
        await new Promise<void>((resolve) => this.#scheduler.after(HAND_OVER_LOOK_MS, resolve));
    } catch {
      // The engine cannot be reached: the leases end by themselves.
    }
    this.#isStopping = true;
    const given = [...this.#children].map(async ([shard, child]) => {
      await this.#releaseOrExit(child);
      await this.#leases.give(shard);
    });
    given.push(...[...this.#all()].map((child) => this.#releaseOrExit(child)));
    await Promise.allSettled(given);
    // They end once they have answered what they have forwarded.
    const ended = [...this.#all()].map((child) => this.#exitOf(child));
    await Promise.race([
      Promise.all(ended),
      new Promise<void>((resolve) => this.#scheduler.after(STOP_MS, resolve)),
    ]);
    await this.#leave();
  }

  /** Ends everything at once. */
  kill(): void {
    this.#scheduler.kill();
    for (const child of this.#all()) child.kill();
  }

  /** Ends the process of one shard, or that which forwards. */
  killProcess(): void {
    const all = [...this.#all()];
    if (all.length > 0) this.machine.universe.random.pick(all).kill();
  }

  async #leave(): Promise<void> {
    try {
      await this.#leases.stop();
    } catch {
      // The leases end by themselves.
    } finally {
      this.kill();
    }
  }

  *#all(): Generator<ShardProcess> {
    yield* this.#children.values();
    if (this.#forwarding !== undefined) yield this.#forwarding;
    if (this.#standby !== undefined) yield this.#standby.process;
    yield* this.#released;
  }

  #newProcess(shard?: number, epoch: number | Promise<number> = 0, onCaughtUp?: () => void): ShardProcess {
    const owned =
      shard === undefined
        ? undefined
        : { shard, epoch, disk: this.#disks(shard), ...(onCaughtUp && { onCaughtUp }) };
    const child = new ShardProcess(this.machine, this.#parts, owned);
    this.#send(child);
    return child;
  }

  /** Sends the routes and the end of the leases to a process. */
  #send(child: ShardProcess): void {
    const { routes, validUntil } = this.#update;
    child.scheduler.soon(() => child.update(routes, validUntil));
  }

  /** Calls `ended` when the parent process notices the end of a process. */
  #onExit(child: ShardProcess, ended: () => void): void {
    child.onExit(() => this.#scheduler.after(1, ended));
  }

  #prepare(shard: number | undefined): void {
    if (this.#standby?.shard === shard) return;
    const given = this.#standby;
    this.#standby = undefined;
    given?.process.kill();
    if (shard !== undefined) this.#startStandby(shard, FIRST_RESTART_DELAY_MS);
  }

  #startStandby(shard: number, delay: number): void {
    const epoch = deferred<number>();
    const caughtUp = (): void => {
      if (this.#standby !== standby || standby.isPrepared) return;
      standby.isPrepared = true;
      void this.#leases.renewNow();
    };
    const process = this.#newProcess(shard, epoch.promise, () => this.#scheduler.after(1, caughtUp));
    const standby: Standby = {
      shard,
      process,
      isPrepared: false,
      own: (number) => process.scheduler.after(1, () => epoch.resolve(number)),
    };
    this.#standby = standby;
    this.#onExit(process, () => {
      if (this.#standby !== standby) return;
      // While it is started again, there is nothing to hand a lease to.
      this.#standby = undefined;
      this.#scheduler.after(delay, () => {
        if (this.#standby === undefined && !this.#isStopping && !this.#children.has(shard))
          this.#startStandby(shard, nextDelay(delay));
      });
    });
  }

  #serve({ shard, epoch }: ShardLease, delay: number): void {
    if (this.#isStopping) return;
    const standby = this.#standby;
    let child: ShardProcess;
    if (standby?.shard === shard && !standby.process.scheduler.isDead) {
      this.#standby = undefined;
      standby.own(epoch);
      child = standby.process;
    } else {
      if (standby?.shard === shard) this.#standby = undefined;
      child = this.#newProcess(shard, epoch);
    }
    this.#children.set(shard, child);
    this.#send(child);
    child.started.then(
      () => {
        if (this.#isOpen) this.#scheduler.after(1, () => void this.#leases.renewNow());
      },
      () => undefined,
    );
    this.#onExit(child, () => {
      if (this.#children.get(shard) !== child) return;
      this.#children.delete(shard);
      if (this.#isStopping || child.isReleased) return;
      this.#serveAgain(shard, delay);
    });
  }

  #serveAgain(shard: number, delay: number): void {
    this.#scheduler.after(delay, () => {
      if (this.#isStopping || this.#children.has(shard)) return;
      this.#leases.retake(shard).then(
        (lease) => lease && this.#serve(lease, nextDelay(delay)),
        () => this.#serveAgain(shard, nextDelay(delay)),
      );
    });
  }

  async #release(shard: number): Promise<void> {
    const child = this.#children.get(shard);
    if (child === undefined) return;
    if (this.#children.size === 1 && this.#forwarding === undefined && !this.#isClosing)
      this.#startForwarding();
    await this.#forwarding?.started.catch(() => undefined);
    await this.#releaseOrExit(child);
    if (this.#children.get(shard) === child) this.#children.delete(shard);
    if (child.scheduler.isDead) return;
    this.#released.add(child);
    this.#onExit(child, () => this.#released.delete(child));
  }

  #releaseOrExit(child: ShardProcess): Promise<void> {
    if (child.scheduler.isDead) return Promise.resolve();
    return Promise.race([child.release(), this.#exitOf(child)]);
  }

  #exitOf(child: ShardProcess): Promise<void> {
    return new Promise((resolve) => {
      if (child.scheduler.isDead) resolve();
      else this.#onExit(child, resolve);
    });
  }

  #lose(shard: number): void {
    const child = this.#children.get(shard);
    this.#children.delete(shard);
    child?.kill();
  }

  #renewed(view: ClusterView, validUntil: number): void {
    if (this.#children.size === 0 && this.#forwarding === undefined && !this.#isClosing)
      this.#startForwarding();
    this.#view = view;
    const { plant, leaseMs } = this.#parts;
    this.#update = {
      routes: new Map(shardAddressesOf(view)),
      validUntil: plant?.leaseEnd?.({ validUntil, now: this.machine.mono(), leaseMs }) ?? validUntil,
    };
    for (const child of this.#all()) this.#send(child);
  }

  #startForwarding(): void {
    const child = this.#newProcess();
    this.#forwarding = child;
    this.#onExit(child, () => (this.#forwarding = undefined));
  }
}

const nextDelay = (delay: number): number => Math.min(2 * delay, LONGEST_RESTART_DELAY_MS);
