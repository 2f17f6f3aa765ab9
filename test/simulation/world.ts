import { INCONSISTENT_WRITE_MESSAGE } from "../../actors/thread/record-invariants.ts";
import type { LogFields, Logger } from "../../src/ports/logger.ts";
import { checkConsistency } from "./consistency.ts";
import { Clients } from "./clients.ts";
import { SimulatedClock } from "./clock.ts";
import { DEAD, Disk, type Crash, type PlantedFault } from "./disk.ts";
import { Observed } from "./observed.ts";
import { SimulatedRandom } from "./random.ts";
import { Receiver } from "./receiver.ts";
import { SimulatedScheduler } from "./scheduler.ts";
import { startServer, type Life } from "./server.ts";

export interface SimulationOptions {
  readonly seed: number;
  readonly plant?: PlantedFault;
  /** The storage is one over a network. */
  readonly isRemote?: boolean;
  /** How often the server is killed or stopped before its last life. */
  readonly ends?: number;
}

/** How a life ends. `cut`: it is killed while it drains. */
type End = Crash | "stop" | "cut";

/** Runs all ready promise callbacks. */
const settle = () => new Promise<void>((resolve) => setImmediate(resolve));

/** The number of turns after which unfinished work counts as hung. */
const MANY = 20_000;

/** Milliseconds for a drain: none, too few for the running work, enough. */
const DRAINS = [0, 1, 4, 12, 50, 8_000];

/** A whole server without its sockets, its clients and its disk, under one seed. */
export class World {
  readonly observed = new Observed();
  readonly random: SimulatedRandom;
  readonly disk: Disk;
  readonly clients: Clients;
  /** The log lines of the servers. */
  readonly lines: string[] = [];
  readonly ended = { stop: 0, cut: 0, kill: 0, power: 0 };
  readonly #seed: number;
  readonly #ends: number;
  readonly #clock: SimulatedClock;
  readonly #logger: Logger;
  #boots = 0;
  #scheduler: SimulatedScheduler | undefined;
  #life: Life | undefined;

  constructor({ seed, plant = null, isRemote = false, ends }: SimulationOptions) {
    this.#seed = seed;
    const random = new SimulatedRandom(seed);
    this.random = random;
    // Crons fire every minute; the start time lies just before the first one.
    this.#clock = new SimulatedClock(Date.UTC(2026, 0, 1) - random.below(1_000));
    const log = (message: string, fields: LogFields = {}) =>
      void this.lines.push(`${message} ${JSON.stringify(fields)}`);
    const error = (message: string, fields: LogFields = {}) => {
      log(message, fields);
      if (message === INCONSISTENT_WRITE_MESSAGE) this.observed.violation("errors", this.lines.at(-1) ?? "");
      // A dead server may log that its disk is gone.
      if (message === GIVEN_UP && this.#scheduler !== undefined && fields["cause"] !== DEAD)
        this.observed.violation("errors", this.lines.at(-1) ?? "");
    };
    this.#logger = { debug: log, info: log, warn: log, error };
    this.disk = new Disk(random, plant, new Map(), isRemote);
    this.#ends = ends ?? 1 + random.below(5);
    const { observed } = this;
    this.clients = new Clients({ observed, random, clock: this.#clock, life: () => this.#life });
  }

  get life(): Life {
    if (this.#life === undefined) throw new TypeError("The server is down");
    return this.#life;
  }

  async run(): Promise<void> {
    for (let end = 0; end < this.#ends; end++) {
      // Sometimes it is killed while it starts, or stopped as soon as it has started.
      if (!(await this.#start(this.random.chance(0.1) ? this.random.below(40) : MANY))) continue;
      await this.#work(this.random.chance(0.25) ? this.random.below(4) : 20 + this.random.below(400));
      await this.#end(this.random.pick<End>(["stop", "stop", "stop", "cut", "kill", "kill", "power"]));
    }
    await this.#start(MANY);
    await this.#work(20 + this.random.below(400));
    await this.drive(this.clients.end());
    await this.quiesce();
  }

  /** Runs until nothing moves any more. */
  async quiesce(): Promise<void> {
    for (let step = 0; step < MANY; step++) if (!(await this.#step(5_000))) return;
    this.observed.violation("I3", "the server does not come to rest");
  }

  async #work(steps: number): Promise<void> {
    for (let step = 0; step < steps; step++) {
      if (this.random.chance(0.15)) this.clients.ask();
      await this.#step(2);
    }
  }

  async #step(horizon: number): Promise<boolean> {
    const scheduler = this.#scheduler;
    if (scheduler === undefined) throw new TypeError("The server is down");
    if (!scheduler.step()) {
      const next = scheduler.next();
      if (next === undefined || next > this.#clock.mono() + horizon) return false;
      this.#clock.advance(Math.max(0, next - this.#clock.mono()));
    }
    await settle();
    return true;
  }

  /** Runs until the promise settles, or for some steps. False: it has not settled. */
  async #until(promise: Promise<unknown>, steps: number, meanwhile?: () => void): Promise<boolean> {
    let done = false;
    const end = () => (done = true);
    promise.then(end, end);
    await settle();
    for (let step = 0; !done && step < steps; step++) {
      meanwhile?.();
      await this.#step(Number.POSITIVE_INFINITY);
    }
    return done;
  }

  /** Runs until the promise settles. */
  async drive<T>(promise: Promise<T>): Promise<T> {
    if (!(await this.#until(promise, MANY))) throw new Error("the server does not come to an end of it");
    return promise;
  }

  /** Returns false if it was killed before it was ready. */
  async #start(steps: number): Promise<boolean> {
    const { random, disk, observed } = this;
    const clock = this.#clock;
    const scheduler = new SimulatedScheduler(clock, random);
    this.#scheduler = scheduler;
    const starting = startServer({
      scheduler,
      clock,
      random,
      logger: this.#logger,
      kv: disk.mount(scheduler),
      observed,
      client: new Receiver(observed, scheduler, random),
      sleep: (signal) => this.#sleep(scheduler, signal),
      boot: `boot ${this.#boots}`,
      // In every third world there is no limit on concurrent runs.
      slots: [Infinity, 1, 2][this.#seed % 3] ?? Infinity,
      // In every second world most appends count as large.
      largeWrites: this.#seed % 2 === 0 ? { large: 700, most: 2_000 } : undefined,
      // In every fourth world most states count as large, and there is memory for one or two.
      runningStates: this.#seed % 4 === 1 ? { largeState: 400, maxStateBytes: 1_500 } : undefined,
    });
    if (!(await this.#until(starting, steps))) {
      if (steps >= MANY) throw new Error("the server does not start");
      starting.catch(() => undefined);
      await this.#crash("kill");
      return false;
    }
    this.#life = await starting;
    return true;
  }

  async #end(how: End): Promise<void> {
    const { random } = this;
    if (how === "kill" || how === "power") return this.#crash(how);
    const { life } = this;
    const stopped = life.stop(random.pick(DRAINS));
    // Clients send requests until the server stops accepting them: some, or one with each step.
    const rate = random.chance(0.3) ? 1 : 0.1;
    const meanwhile = () => {
      if (random.chance(rate)) this.clients.ask();
    };
    if (how === "cut") this.ended.cut++;
    const isOver = await this.#until(stopped, how === "cut" ? random.below(60) : MANY, meanwhile);
    if (!isOver) {
      stopped.catch(() => undefined);
      if (how === "stop") this.observed.violation("I12", "a stop does not come to its end");
      return this.#crash(random.chance(0.3) ? "power" : "kill");
    }
    await stopped;
    if (how === "stop") this.ended.stop++;
    await this.#gone("stop");
  }

  async #crash(kind: Crash): Promise<void> {
    this.ended[kind]++;
    this.#scheduler?.kill();
    this.disk.crash(kind);
    await this.#gone(kind);
    if (kind === "power") this.#boots++;
  }

  /** The process has ended: its data is inspected, and some time passes. */
  async #gone(how: "stop" | Crash): Promise<void> {
    this.#scheduler?.kill();
    this.disk.unmount();
    this.#life = undefined;
    this.#scheduler = undefined;
    for (const transcript of this.clients.transcripts.values()) transcript.cut(how);
    this.observed.over(how);
    this.clients.machines.over();
    await checkConsistency(this.disk, this.#clock, this.observed);
    if (this.random.chance(0.3)) this.#clock.advance(this.random.below(1_000));
    else if (this.random.chance(0.1)) this.#clock.advance(60_000 + this.random.below(90_000));
  }

  #sleep(scheduler: SimulatedScheduler, signal: AbortSignal | null): Promise<void> {
    return new Promise((resolve, reject) => {
      const cancel = scheduler.after(this.random.float() * 8, resolve);
      signal?.addEventListener("abort", () => {
        cancel();
        reject(signal.reason);
      });
    });
  }
}

/** The message logged when a thread's stored records contradict its actor. No disk fails here. */
const GIVEN_UP = "a thread's actor was given up";
