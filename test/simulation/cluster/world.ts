import { unpackWriteBatch } from "../../../src/codec/value-encoding.ts";
import { shardOf } from "../../../src/model/shard-of.ts";
import type { LogEntry } from "../../../src/ports/shard-log.ts";
import { APPLIED_KEY, decodePosition } from "../../../src/replication/log-applier.ts";
import { isServed } from "../../../src/cluster/cluster-node-info.ts";
import { preferredOwner } from "../../../src/cluster/shard-placement.ts";
import { SimulatedClock } from "../clock.ts";
import { SimulatedRandom } from "../random.ts";
import { SimulatedScheduler } from "../scheduler.ts";
import { ClusterClients, listOf } from "./clients.ts";
import { SimulatedEngine } from "./engine.ts";
import { Machine, type Universe } from "./machine.ts";
import { SimulatedNode } from "./node.ts";
import { PeerNetwork } from "./peer-network.ts";
import type { ClusterPlant } from "./planted-faults.ts";
import { ShardDisk } from "./shard-disk.ts";
import { type ClusterParts, listKey } from "./shard-process.ts";

const LEASE_MS = 1_000;
/** Milliseconds in which the cluster has to come to rest once the faults have stopped. */
const REST_MS = 60_000;
/** Milliseconds after which nothing that was sent before is still under way. */
const QUIET_MS = 12_000;
/** Milliseconds in which then no shard moves. */
const STILL_MS = 4_000;
/** The number of steps after which unfinished work counts as hung. */
const MANY = 400_000;

/** Runs all ready promise callbacks. */
const settle = () => new Promise<void>((resolve) => setImmediate(resolve));

type Fault =
  | "power cut"
  | "kill"
  | "process"
  | "pause"
  | "cut from engine"
  | "cut between nodes"
  | "engine restart"
  | "slow engine"
  | "stop"
  | "join"
  | "drain"
  | "new disk"
  | "clock";

const FAULTS: readonly Fault[] = [
  "power cut",
  "kill",
  "process",
  "process",
  "pause",
  "pause",
  "cut from engine",
  "cut from engine",
  "cut between nodes",
  "engine restart",
  "slow engine",
  "stop",
  "stop",
  "join",
  "drain",
  "new disk",
  "clock",
];

/** What happens in a world without crashes. */
const ORDERLY: readonly Fault[] = ["stop", "stop", "join", "drain"];

/** A machine with what is on it. */
interface Place {
  readonly machine: Machine;
  disks: Map<number, ShardDisk>;
  node: SimulatedNode | undefined;
  /** True while the node is stopping in an orderly way. */
  isClosing: boolean;
}

/** A cluster with its engine, its network and its clients, under one seed. */
export class ClusterWorld {
  readonly violations: string[] = [];
  /** How often each fault happened. */
  readonly faults = new Map<Fault, number>();
  readonly clients: ClusterClients;
  readonly engine: SimulatedEngine;
  /** The number of times that an owner has begun to serve a shard. */
  takeovers = 0;
  /** In every fifth world, nothing crashes and the network works: then no request may fail. */
  readonly #isOrderly: boolean;
  readonly #universe: Universe;
  readonly #parts: ClusterParts;
  readonly #places: Place[] = [];
  /** The highest epoch whose owner has begun to serve, by shard. */
  readonly #serving = new Map<number, number>();
  #isHealed = false;

  constructor(seed: number, plant: ClusterPlant | undefined) {
    const random = new SimulatedRandom(seed);
    const clock = new SimulatedClock();
    this.#universe = { clock, random, scheduler: new SimulatedScheduler(clock, random) };
    const universe = this.#universe;
    this.engine = new SimulatedEngine({
      universe,
      leaseMs: LEASE_MS,
      // In every second world, only the takeover entries keep former owners from writing.
      isEpochChecked: seed % 2 === 0,
      stored: (shard, entry) => this.#stored(shard, entry),
    });
    this.#isOrderly = seed % 5 === 0;
    this.engine.isCalm = this.#isOrderly;
    const shards = 2 + random.below(3);
    this.#parts = {
      engine: this.engine,
      network: new PeerNetwork(universe),
      shards,
      leaseMs: LEASE_MS,
      snapshotBytes: random.pick([600, 3_000, 20_000, 1_000_000]),
      patienceMs: random.pick([300, 1_500, 4_000]),
      plant,
      served: (shard, epoch) => {
        this.takeovers++;
        this.#serving.set(shard, Math.max(epoch, this.#serving.get(shard) ?? 0));
      },
    };
    this.clients = new ClusterClients({
      universe,
      registers: Array.from({ length: shards }, (_, shard) => nameIn(shard, shards)),
      nodes: () => this.#nodes,
      isOrderly: this.#isOrderly,
      violation: (code, message) => this.violation(code, message),
    });
    for (let i = 0; i < 3; i++) this.#addPlace();
  }

  violation(code: string, message: string): void {
    const at = Math.round(this.#universe.clock.mono());
    if (this.violations.length < 50) this.violations.push(`${code}: ${message} (at ${at} ms)`);
  }

  /** The number of complete snapshots that were made. */
  get snapshots(): number {
    return this.engine.snapshotsMade;
  }

  get #nodes(): readonly SimulatedNode[] {
    return this.#places.flatMap(({ node }) => (node === undefined || node.isDead ? [] : [node]));
  }

  async run(): Promise<void> {
    const { random, clock } = this.#universe;
    for (const place of this.#places) this.#later(random.below(500), () => this.#startNode(place));
    const idleMs = random.pick([40, 120, 120, 400]);
    this.#later(600, () => this.clients.start(4, idleMs));
    const until = clock.mono() + 6_000 + random.below(8_000);
    this.#scheduleFault(until);
    await this.#drive(() => clock.mono() >= until);
    this.#heal();
    // The clients go on for a moment, so that a fault shows whose effect comes late.
    const last = clock.mono() + 1_500;
    await this.#drive(() => clock.mono() >= last);
    this.clients.isOver = true;
    const rest = clock.mono() + REST_MS;
    await this.#drive(() => clock.mono() >= rest || this.#isAtRest());
    // What was sent earlier may still arrive.
    const quiet = clock.mono() + QUIET_MS;
    await this.#drive(() => clock.mono() >= quiet);
    const { takeovers } = this;
    const still = clock.mono() + STILL_MS;
    await this.#drive(() => clock.mono() >= still);
    if (this.takeovers !== takeovers) this.violation("C5", "shards still move");
    if (this.clients.pending > 0) this.violation("C6", `${this.clients.pending} requests do not end`);
    if (!this.#isAtRest()) this.violation("C5", `the cluster does not come to rest: ${this.#describe()}`);
    else await this.#check();
    for (const { node } of this.#places) node?.kill();
  }

  /** Runs until `isOver` returns true. */
  async #drive(isOver: () => boolean): Promise<void> {
    const { scheduler, clock } = this.#universe;
    for (let steps = 0; steps < MANY; steps++) {
      if (isOver()) return;
      if (!scheduler.step()) {
        const next = scheduler.next();
        if (next === undefined) return;
        clock.advance(Math.max(0, next - clock.mono()));
        continue;
      }
      await settle();
    }
    throw new Error("the world does not come to an end");
  }

  #later(ms: number, task: () => void): void {
    this.#universe.scheduler.after(ms, task);
  }

  #addPlace(): Place {
    const machine = new Machine(`n${this.#places.length}`, this.#universe);
    const place: Place = { machine, disks: new Map(), node: undefined, isClosing: false };
    this.#places.push(place);
    return place;
  }

  #startNode(place: Place): void {
    const { random } = this.#universe;
    const diskOf = (shard: number): ShardDisk => {
      let disk = place.disks.get(shard);
      if (disk === undefined) place.disks.set(shard, (disk = new ShardDisk(random)));
      return disk;
    };
    place.isClosing = false;
    const node = new SimulatedNode(place.machine, this.#parts, diskOf);
    place.node = node;
    void node.start();
    this.#watch(place, node);
  }

  /** Starts a node again that has ended because it could not join. */
  #watch(place: Place, node: SimulatedNode): void {
    this.#later(300, () => {
      if (place.node !== node || place.isClosing) return;
      if (node.isDead) this.#startNode(place);
      else if (!node.isOpen) this.#watch(place, node);
    });
  }

  #scheduleFault(until: number): void {
    const { random, clock } = this.#universe;
    this.#later(100 + random.float() * 1_500, () => {
      if (clock.mono() >= until) return;
      this.#fault(random.pick(this.#isOrderly ? ORDERLY : FAULTS));
      this.#scheduleFault(until);
    });
  }

  #fault(fault: Fault): void {
    const { random } = this.#universe;
    const { engine } = this;
    const place = random.pick(this.#places);
    const { machine } = place;
    const ms = random.float() * random.pick([400, 1_500, 4_000]);
    this.faults.set(fault, (this.faults.get(fault) ?? 0) + 1);
    switch (fault) {
      case "power cut":
      case "kill":
      case "new disk":
        return this.#crash(place, fault, ms);
      case "process":
        if (place.node?.isOpen === true) place.node.killProcess();
        return;
      case "pause":
        machine.pause();
        return this.#later(ms, () => machine.resume());
      case "cut from engine":
        return this.#cutOff(machine);
      case "cut between nodes": {
        const other = random.pick(this.#places);
        if (other !== place) this.#later(ms, this.#parts.network.cut(machine, other.machine));
        return;
      }
      case "engine restart":
        return engine.restart(ms);
      case "slow engine":
        engine.slow.add(machine);
        if (random.chance(0.5)) this.#later(random.float() * ms, () => this.#cutOff(machine));
        return this.#later(ms, () => engine.slow.delete(machine));
      case "stop":
        if (place.node?.isOpen !== true || place.isClosing) return;
        if (this.#isOrderly && !this.#canSpare(place)) return;
        place.isClosing = true;
        void place.node.close().then(() => this.#later(ms, () => this.#revive(place)));
        return;
      case "join":
        if (this.#places.length < 5) this.#startNode(this.#addPlace());
        return;
      case "drain": {
        const id = place.node?.id;
        if (id === undefined) return;
        void engine.membership.setDraining(id, true);
        return this.#later(ms, () => void engine.membership.setDraining(id, false));
      }
      case "clock":
        machine.drift();
        return machine.jump(random.below(20_000) - 10_000);
    }
  }

  /** Whether two other nodes are open and stay so. */
  #canSpare(place: Place): boolean {
    const others = this.#places.filter((one) => one !== place && one.node?.isOpen === true && !one.isClosing);
    return others.length >= 2;
  }

  /** Ends the drain of a node. The engine refuses that while it does not count the node as living. */
  #undrain(node: SimulatedNode): void {
    void this.engine.membership.setDraining(node.id, false).then((isDone) => {
      if (!isDone && !node.isDead) this.#later(100, () => this.#undrain(node));
    });
  }

  /** Cuts a machine off from the engine for some time. */
  #cutOff(machine: Machine): void {
    const { random } = this.#universe;
    this.engine.cut.add(machine);
    const ms = random.float() * random.pick([400, 1_500, 1_500, 4_000]);
    this.#later(ms, () => this.engine.cut.delete(machine));
  }

  #crash(place: Place, kind: "power cut" | "kill" | "new disk", ms: number): void {
    const { node } = place;
    if (node === undefined) return;
    node.kill();
    if (kind === "power cut") for (const disk of place.disks.values()) disk.powerCut();
    if (kind === "new disk") place.disks = new Map();
    place.isClosing = true;
    this.#later(ms, () => this.#revive(place));
  }

  #revive(place: Place): void {
    if (place.node?.isDead === true) this.#startNode(place);
  }

  /** Ends all faults, and starts all nodes that are down. */
  #heal(): void {
    const { engine } = this;
    this.#isHealed = true;
    engine.isCalm = true;
    engine.isDown = false;
    engine.cut.clear();
    engine.slow.clear();
    this.#parts.network.heal();
    for (const place of this.#places) {
      if (place.machine.isPaused) place.machine.resume();
      if (place.node !== undefined && !place.isClosing) this.#undrain(place.node);
      this.#revive(place);
    }
  }

  #stored(shard: number, { seq, epoch }: LogEntry): void {
    const before = this.engine.log.entries.get(shard)?.at(-2);
    if (before !== undefined && before.epoch > epoch)
      this.violation(
        "C3",
        `shard ${shard}: entry ${seq} of epoch ${epoch} comes after one of epoch ${before.epoch}`,
      );
    const serving = this.#serving.get(shard) ?? 0;
    if (serving > epoch)
      this.violation(
        "C3",
        `shard ${shard}: entry ${seq} of epoch ${epoch} is stored while the owner of epoch ${serving} serves`,
      );
  }

  /** Whether each node is open, all nodes agree, and each shard is served by the node that should own it. */
  #isAtRest(): boolean {
    if (!this.#isHealed || this.clients.pending > 0 || this.clients.working > 0) return false;
    const views = this.#places.map(({ node }) => (node?.isOpen === true ? node.view : undefined));
    const [first] = views;
    if (first === undefined || first.owners.length !== this.#parts.shards) return false;
    const text = JSON.stringify(first);
    return (
      first.nodes.length === this.#places.length &&
      first.owners.every(
        ({ shard, node }) => isServed(shard, first) && preferredOwner(shard, first.nodes)?.id === node,
      ) &&
      views.every((view) => JSON.stringify(view) === text)
    );
  }

  #describe(): string {
    return JSON.stringify(
      this.#places.map(({ machine: { name }, node }) => ({
        name,
        isOpen: node?.isOpen,
        isDead: node?.isDead,
        view: node?.view,
      })),
    );
  }

  /** Checks a cluster at rest. */
  async #check(): Promise<void> {
    for (const [shard, register] of this.clients.registers.entries()) {
      const stored = this.#contentOf(shard);
      const list = listOf(String(stored.get(listKey(register.name)) ?? ""));
      const found = new Set(list);
      for (const item of register.acknowledged)
        if (!found.has(item))
          this.violation("C1", `item ${item} of ${register.name} was acknowledged and is gone`);
      if (found.size !== list.length) this.violation("C2", `${register.name} has an item twice`);
      for (const node of this.#nodes) {
        for (const process of node.listening) {
          const answer = { done: false, body: "" };
          void process.answerClient("GET", register.name, "").then(({ status, body }) => {
            answer.done = true;
            answer.body = status === 200 ? body : `status ${status}`;
          });
          const until = this.#universe.clock.mono() + 20_000;
          await this.#drive(() => answer.done || this.#universe.clock.mono() >= until);
          if (answer.body !== list.join())
            this.violation(
              "C5",
              `${node.id} reads ${register.name} as ${answer.body}, which is ${list.join()}`,
            );
        }
      }
      this.#checkDisks(shard);
    }
  }

  /** The content of a shard by its log, up to position `last`. */
  #contentOf(shard: number, last = Infinity): ReadonlyMap<string, Buffer> {
    const content = new Map<string, Buffer>();
    for (const { seq, batch } of this.engine.log.entries.get(shard) ?? []) {
      if (seq > last) break;
      for (const { key, value } of unpackWriteBatch(batch)) {
        if (value === null) content.delete(key);
        else content.set(key, value);
      }
    }
    return content;
  }

  /** Checks that each directory of a shard equals the log up to its position. */
  #checkDisks(shard: number): void {
    for (const { machine, disks } of this.#places) {
      const values = disks.get(shard)?.values;
      const position = values?.get(APPLIED_KEY);
      if (values === undefined || (position === undefined && values.size === 0)) continue;
      const seq = position === undefined ? 0 : decodePosition(position)[0];
      const expected = this.#contentOf(shard, seq);
      const isSame =
        values.size - 1 === expected.size &&
        [...expected].every(([key, value]) => values.get(key)?.equals(value) === true);
      if (!isSame) this.violation("C7", `shard ${shard} on ${machine.name} is not the log up to ${seq}`);
    }
  }
}

/** The name of a register in a shard. */
function nameIn(shard: number, shards: number): string {
  for (let i = 0; ; i++) if (shardOf(`r${i}`, shards) === shard) return `r${i}`;
}
