import type { RunDraft } from "../../actors/port.ts";
import { createSystem, defaultLimits, type ThreadSystem } from "../../actors/system.ts";
import { REFUSED } from "../../actors/thread/consistency.ts";
import { localHost } from "../../src/engine/host.ts";
import { nativeEngine } from "../../src/engine/native.ts";
import { GraphRegistry } from "../../src/graph/registry.ts";
import { ServiceError } from "../../src/model/errors.ts";
import { uuid7 } from "../../src/model/ids.ts";
import { type Durability, isTerminal, type MultitaskStrategy, type RunKwargs } from "../../src/model/run.ts";
import type { Temporary, ThreadKey } from "../../src/model/thread.ts";
import { noFailpoints } from "../../src/ports/failpoints.ts";
import type { LogFields, Logger } from "../../src/ports/logger.ts";
import { openStorage, type Storage } from "../../src/storage/open.ts";
import { createStore, PLAIN_POLICY } from "../../src/service/store/store.ts";
import { createHub, type Hub } from "../../src/stream/hub.ts";
import { Disk, type Crash, type Plant } from "./disk.ts";
import { simulated, type Plan } from "./graph.ts";
import { SimulatedClock } from "./clock.ts";
import { Observed } from "./observed.ts";
import { SimulatedRandom } from "./random.ts";
import { SimulatedScheduler } from "./scheduler.ts";
import { Transcript } from "./transcript.ts";

export interface SimulationOptions {
  readonly seed: number;
  readonly plant?: Plant;
  /** How often the server dies. */
  readonly crashes?: number;
}

/** One life of the server, from a boot to a crash. */
interface Life {
  readonly scheduler: SimulatedScheduler;
  readonly storage: Storage;
  readonly hub: Hub;
  readonly system: ThreadSystem;
}

const temporaries: readonly Temporary[] = ["background", "bound", "free"];
const durabilities: readonly Durability[] = ["async", "async", "sync", "exit"];
const strategies: readonly MultitaskStrategy[] = ["reject", "enqueue", "interrupt", "rollback"];

/** Lets every promise callback run that is ready. */
const settle = () => new Promise<void>((resolve) => setImmediate(resolve));

/** A whole server but for its sockets, its clients and its disk, under one seed. */
export class World {
  readonly observed = new Observed();
  readonly transcripts = new Map<string, Transcript>();
  readonly random: SimulatedRandom;
  readonly threads: ThreadKey[] = [];
  readonly disk: Disk;
  readonly #seed: number;
  readonly #crashes: number;
  readonly #clock = new SimulatedClock();
  /** What the servers had to say. */
  readonly lines: string[] = [];
  readonly #logger: Logger;
  #boots = 0;
  #life: Life | undefined;

  constructor({ seed, plant = null, crashes }: SimulationOptions) {
    this.#seed = seed;
    this.random = new SimulatedRandom(seed);
    const log = (message: string, fields: LogFields = {}) =>
      void this.lines.push(`${message} ${JSON.stringify(fields)}`);
    const error = (message: string, fields: LogFields = {}) => {
      log(message, fields);
      if (message === REFUSED) this.observed.violation("errors", `${message}: ${JSON.stringify(fields)}`);
    };
    this.#logger = { debug: log, info: log, warn: log, error };
    this.disk = new Disk(this.random, plant);
    this.#crashes = crashes ?? 1 + this.random.below(3);
  }

  get life(): Life {
    if (this.#life === undefined) throw new TypeError("The server is down");
    return this.#life;
  }

  async run(): Promise<void> {
    for (let life = 0; life <= this.#crashes; life++) {
      await this.#boot();
      const steps = 20 + this.random.below(400);
      for (let step = 0; step < steps; step++) {
        if (this.random.chance(0.15)) this.#ask();
        await this.#step(2);
      }
      if (life < this.#crashes) this.#crash(this.random.chance(0.4) ? "power" : "kill");
    }
    await this.quiesce();
  }

  /** Runs on until nothing moves any more. */
  async quiesce(): Promise<void> {
    for (let step = 0; step < 20_000; step++) if (!(await this.#step(5_000))) return;
    this.observed.violation("I3", "the server does not come to rest");
  }

  async #step(horizon: number): Promise<boolean> {
    const { scheduler } = this.life;
    if (!scheduler.step()) {
      const next = scheduler.next();
      if (next === undefined || next > this.#clock.mono() + horizon) return false;
      this.#clock.advance(Math.max(0, next - this.#clock.mono()));
    }
    await settle();
    return true;
  }

  async #drive<T>(promise: Promise<T>): Promise<T> {
    let done = false;
    const end = () => (done = true);
    promise.then(end, end);
    for (let step = 0; !done && step < 20_000; step++) await this.#step(Number.POSITIVE_INFINITY);
    return promise;
  }

  async #boot(): Promise<void> {
    const { random } = this;
    const clock = this.#clock;
    const scheduler = new SimulatedScheduler(clock, random);
    const logger = this.#logger;
    this.#life = { scheduler } as Life;
    const deps = { scheduler, clock, failpoints: noFailpoints, logger };
    const storage = await this.#drive(openStorage({ kind: "kv", kv: this.disk.mount(scheduler) }, deps));
    const journal = this.observed.journal(storage.journal);
    const hub = createHub({ journal, scheduler, logger });
    const registry = new GraphRegistry().add(
      "sim",
      simulated((signal) => this.#sleep(scheduler, signal)),
    );
    const system = createSystem({
      journal,
      engine: nativeEngine(registry),
      host: this.observed.host(localHost(registry, { logger, random, clock })),
      sinks: hub,
      store: createStore({
        items: storage.catalog.items,
        clock,
        scheduler,
        logger,
        policy: PLAIN_POLICY,
      }),
      clock,
      random,
      scheduler,
      failpoints: noFailpoints,
      logger,
      boot: `boot ${this.#boots}`,
      limits: {
        ...defaultLimits,
        attempts: 1_000,
        idle: 50,
        linger: 200,
        // In every third world runs do not wait for slots.
        concurrent: { ...defaultLimits.concurrent, all: [Infinity, 1, 2][this.#seed % 3] ?? Infinity },
      },
    });
    this.#life = { scheduler, storage, hub, system };
    await this.#drive(system.recover());
  }

  #crash(kind: Crash): void {
    this.life.scheduler.kill();
    this.disk.crash(kind);
    this.#life = undefined;
    for (const transcript of this.transcripts.values()) transcript.cut(kind);
    this.observed.crash();
    if (kind === "power") this.#boots++;
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

  // --- clients ---

  #ask(): void {
    try {
      this.#client();
    } catch (thrown) {
      // Reading what is stored must always work.
      this.observed.violation("I1", `a read failed: ${String(thrown)}`);
    }
  }

  #client(): void {
    const roll = this.random.float();
    if (this.threads.length === 0 || (roll < 0.1 && this.threads.length < 5)) this.#createThread();
    else if (roll < 0.5) this.#createRun();
    else if (roll < 0.6) this.#createAlone();
    else if (roll < 0.7) this.#cancel();
    else if (roll < 0.78) this.#update();
    else this.#read();
  }

  /** What is acknowledged to a client of this life counts; a dead server acknowledges nothing. */
  #acknowledged<T>(promise: Promise<T>, then: (value: T) => void): void {
    const { life } = this;
    promise.then(
      (value) => {
        if (this.#life === life) then(value);
      },
      (thrown: unknown) => {
        if (this.#life !== life || thrown instanceof ServiceError) return;
        this.observed.violation("errors", `a client met ${String(thrown)}`);
      },
    );
  }

  #newId(): string {
    return uuid7(this.#clock.now(), this.random.bytes(16));
  }

  #createThread(): void {
    const key = { tenant: "_", thread: this.#newId() };
    const made = this.life.system.create(key, { metadata: { graph_id: "sim" }, if_exists: "raise" });
    this.#acknowledged(made, () => {
      this.threads.push(key);
      this.observed.threads.add(key.thread);
    });
  }

  #createRun(): void {
    const key = this.random.pick(this.threads);
    const draft = this.#draft();
    if (draft.multitask_strategy === "rollback") this.observed.rollback(key.thread);
    const admitted = this.life.system.admit(key, draft);
    this.#acknowledged(admitted, () => this.observed.admit(key, draft.run_id));
  }

  /** A run that is given no thread. */
  #createAlone(): void {
    const { observed, random } = this;
    const key = { tenant: "_", thread: this.#newId() };
    const draft = this.#draft();
    const temporary = random.pick(temporaries);
    const alone = { key, temporary, life: observed.life, acknowledged: false };
    observed.alone.set(draft.run_id, alone);
    const admitted = this.life.system.admit(key, { ...draft, create: { metadata: {}, temporary } });
    this.#acknowledged(admitted, () => (alone.acknowledged = true));
  }

  #draft(): RunDraft {
    const { random, observed } = this;
    const run = this.#newId();
    const plan: Plan = {
      run,
      tokens: random.below(6),
      ask: random.chance(0.2),
      fails: random.chance(0.1),
      deaf: random.chance(0.1),
    };
    const answers = random.chance(0.3);
    const goesOn = !answers && random.chance(0.15);
    const durability = random.pick(durabilities);
    const webhook = random.chance(0.5) ? "http://hook.test/" : null;
    if (durability === "exit") observed.atExit.add(run);
    if (webhook !== null) observed.hooked.add(run);
    const kwargs = {
      input: answers || goesOn ? null : { plan },
      command: answers ? { resume: run } : null,
      config: { configurable: {}, metadata: {} },
      context: {},
      durability,
      webhook,
      stream_mode: ["values"],
      interrupt_before: random.chance(0.05) ? "*" : null,
      interrupt_after: null,
    } as unknown as RunKwargs;
    const multitask_strategy = random.pick(strategies);
    const draft = {
      run_id: run,
      assistant_id: "a",
      graph_id: "sim",
      metadata: {},
      kwargs,
      multitask_strategy,
    };
    return random.chance(0.15) ? { ...draft, delay: 1 + random.below(200) } : draft;
  }

  #cancel(): void {
    const run = this.#someRun();
    if (run === undefined) return;
    const [id, key] = run;
    const action = this.random.chance(0.3) ? "rollback" : "interrupt";
    if (action === "rollback") this.observed.rollable.add(id);
    this.#acknowledged(this.life.system.cancel(key, id, action), () => undefined);
  }

  /** Changes a thread's state, at times on a branch of its own. */
  #update(): void {
    const { random, observed } = this;
    const key = random.pick(this.threads);
    const write = { values: { log: [`${this.#newId()} updated`] }, as_node: "first", at: "" };
    const copies = observed.updates.filter(({ thread }) => thread === key.thread);
    const from = copies.length > 0 && random.chance(0.3) ? random.pick(copies).checkpoint : null;
    const updated = this.life.system.update(key, { from, ns: "", supersteps: [[write]] });
    this.#acknowledged(updated, ({ id }) => observed.updates.push({ thread: key.thread, checkpoint: id }));
  }

  #read(): void {
    const run = this.#someRun();
    if (run === undefined) return;
    const [id, key] = run;
    const transcript = this.transcripts.get(id) ?? new Transcript(key, id);
    this.transcripts.set(id, transcript);
    const { storage, hub } = this.life;
    this.#acknowledged(Promise.resolve(storage.journal.run(key, id)), (record) => {
      if (record !== undefined) transcript.read(hub, record, 1 + this.random.below(6));
    });
  }

  #someRun(): [string, ThreadKey] | undefined {
    const { admitted, alone } = this.observed;
    const runs: [string, ThreadKey][] = [...admitted];
    for (const [id, { key, acknowledged }] of alone) if (acknowledged) runs.push([id, key]);
    return runs.length === 0 ? undefined : runs[this.random.below(runs.length)];
  }

  /** Every run has an end: what is stored says so. */
  async unfinished(): Promise<string[]> {
    const open: string[] = [];
    for (const [id, key] of this.observed.admitted) {
      const record = await this.life.storage.journal.run(key, id);
      if (record !== undefined && !isTerminal(record.status)) open.push(id);
    }
    return open;
  }
}
