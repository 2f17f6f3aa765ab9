import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { nothingHiddenIsLeft } from "./checkers/stateless.ts";
import {
  endedByStop,
  finishedTasks,
  nothingIsRepeated,
  oneRunAtATime,
  type Finished,
} from "./checkers/repeats.ts";
import { recordsGrow, storedResults } from "./checkers/machines.ts";
import { eventsAreContiguous, indexesAgree, stateIsTheFold } from "./checkers/stored.ts";
import { Client } from "./client.ts";
import { Effects } from "./effects.ts";
import { failpoint, slots } from "./faults.ts";
import { WebhookReceiver } from "./webhook-receiver.ts";
import { Ledger, type Violation } from "./ledger.ts";
import { Load } from "./load.ts";
import { servedModes } from "./modes.ts";
import { Life, type Setup, type Slots } from "./process.ts";
import { compile, type Program } from "../fixtures/compile.ts";
import { SeededRandom } from "./random.ts";
import { snapshot, type Snapshot } from "./snapshot.ts";
import { verify } from "./verify.ts";
import { verifyStateless, verifyStatelessWebhooks } from "./verify-stateless.ts";

export interface ChaosOptions {
  readonly kills: number;
  /** The number of graceful stops in addition to the kills. */
  readonly stops?: number;
  readonly seed: number;
  /** Ends after the first kill that comes later than this. */
  readonly seconds?: number;
  readonly threads?: number;
  readonly clients?: number;
  /** Milliseconds: the longest time under load before a kill. */
  readonly longest?: number;
  /** The number of runs that must be acknowledged before the first kill under load, however long that takes. */
  readonly least?: number;
  readonly plant?: string;
  /** True if some threads use the same graph in LangGraph.js. */
  readonly hosted?: boolean;
  readonly say?: (line: string) => void;
}

export interface Outcome {
  readonly seed: number;
  readonly kills: number;
  readonly stops: number;
  readonly operations: number;
  readonly runs: number;
  /** The number of these runs that are stateless. */
  readonly stateless: number;
  readonly events: number;
  /** Acknowledged events of machines. */
  readonly machineEvents: number;
  /** Requests that were sent again, because their idle connection had been closed. */
  readonly repeated: number;
  readonly violations: readonly Violation[];
  /** The data directory; it is kept if a violation was found. */
  readonly directory: string | undefined;
}

/** Milliseconds: the limit for a start, and for work to finish. */
const BOOT = 120_000;

/** Milliseconds: the limit for a graceful stop. Nodes take a tenth of a second. */
const STOP = 9_000;

/** Milliseconds that the test's server keeps temporary threads for readers. */
const LINGER = 1_000;

/** Kills a server under load repeatedly, and compares its answers afterwards with its acknowledgements. */
export async function runChaos(options: ChaosOptions): Promise<Outcome> {
  const directory = mkdtempSync(join(tmpdir(), "heddle-chaos-"));
  const program = await compile(join(import.meta.dirname, "server.ts"));
  const driver = new Driver(options, directory, program);
  await driver.run();
  program.remove();
  const violations = driver.violations;
  if (violations.length === 0) rmSync(directory, { recursive: true, force: true });
  return {
    seed: options.seed,
    kills: driver.ledger.kills.length,
    stops: driver.ledger.stops.length,
    operations: driver.operations,
    runs: driver.ledger.runs.size + driver.ledger.stateless.size,
    stateless: driver.ledger.stateless.size,
    events: driver.events(),
    machineEvents: driver.machineEvents(),
    repeated: driver.repeated,
    violations,
    directory: violations.length === 0 ? undefined : directory,
  };
}

class Driver {
  readonly ledger = new Ledger();
  readonly violations: Violation[] = [];
  operations = 0;
  repeated = 0;
  readonly #options: ChaosOptions;
  readonly #dice: SeededRandom;
  readonly #directory: string;
  readonly #program: Program;
  readonly #effects: Effects;
  readonly #hooks: WebhookReceiver;
  #hook = "";
  readonly #finished = new Map<string, Finished>();
  #modes: readonly string[] = [];
  readonly #seen = new Set<string>();

  constructor(options: ChaosOptions, directory: string, program: Program) {
    this.#options = options;
    this.#program = program;
    this.#dice = new SeededRandom(options.seed);
    this.#directory = directory;
    this.#hooks = new WebhookReceiver(this.#dice);
    this.#effects = new Effects(join(directory, "effects.jsonl"));
  }

  events(): number {
    let count = 0;
    for (const { streams } of [...this.ledger.runs.values(), ...this.ledger.stateless.values()]) {
      for (const { frames } of streams) count += frames.length;
    }
    return count;
  }

  machineEvents(): number {
    const sent = [...this.ledger.machines.values()].flatMap((machine) => machine.sent);
    return sent.filter(({ acknowledged }) => acknowledged !== undefined).length;
  }

  async run(): Promise<void> {
    const { seconds = Number.POSITIVE_INFINITY } = this.#options;
    const more = () => this.#left.kills + this.#left.stops > 0 && this.ledger.now() < seconds * 1000;
    this.#hook = await this.#hooks.open();
    while (this.violations.length === 0 && more()) await this.#cycle();
    // Also after a violation: the server's answers now are part of the evidence.
    await this.#last();
    this.#hooks.close();
  }

  /** The remaining numbers of kills and stops. */
  get #left(): { readonly kills: number; readonly stops: number } {
    const { kills, stops = 0 } = this.#options;
    const left = (all: number, done: number) => Math.max(0, all - done);
    return { kills: left(kills, this.ledger.kills.length), stops: left(stops, this.ledger.stops.length) };
  }

  /** One cycle: start, verify, load, kill or stop, inspect. */
  async #cycle(): Promise<void> {
    const first = this.ledger.kills.length + this.ledger.stops.length === 0;
    const { kills, stops } = this.#left;
    const stopping = this.#dice.chance(stops / (kills + stops));
    const self = !first && !stopping && this.#dice.chance(0.25) ? failpoint(this.#dice) : undefined;
    const room = slots(this.#dice);
    const life = this.#start(self, room);
    if (!first && this.#dice.chance(0.1)) {
      // Kills the server during its start or recovery.
      await Promise.race([sleep(this.#dice.between(20, 500)), life.gone]);
      if (stopping) await this.#stop(life);
      return this.#killed(life, "while starting");
    }
    const port = await life.ready(BOOT);
    if (port === undefined) {
      if (self !== undefined && life.ended === "SIGKILL")
        return this.#killed(life, `at ${self.place}, while starting`);
      this.#found({
        invariant: "boot",
        message:
          life.ended === undefined
            ? `no /ok within ${BOOT} ms`
            : `the server ended with ${life.ended} while starting`,
        evidence: life.stderr,
      });
      return life.kill();
    }
    const client = new Client(port);
    const quiet = this.#dice.chance(0.7);
    if (this.#modes.length === 0) {
      this.#modes = await servedModes(client);
      this.#options.say?.(`stream modes: ${this.#modes.join(", ")}`);
    }
    if (quiet && !first) {
      await this.#verify(client, life, false);
      if (self !== undefined && life.ended === "SIGKILL")
        return this.#killed(life, `at ${self.place}, while looked at`);
      if (this.violations.length > 0) return this.#killed(life, "after a violation");
    }
    const load = new Load({
      client,
      ledger: this.ledger,
      dice: this.#dice,
      threads: this.#options.threads ?? 50,
      modes: this.#modes,
      graphs: this.#options.hosted === true ? ["chaos", "hosted"] : ["chaos"],
      hook: this.#hook,
      report: (violation) => {
        if (self === undefined) this.#found(violation);
      },
    });
    load.start(this.#options.clients ?? 24);
    const how = await Promise.race([this.#load(life).then(() => "killed"), life.gone]);
    load.expectCut();
    if (how !== "killed" && (self === undefined || how !== "SIGKILL")) {
      this.#found({
        invariant: "crash",
        message: `the server ended by itself (${how})`,
        evidence: life.stderr,
      });
    }
    const under = room === undefined ? "under load" : `under load with ${JSON.stringify(room)}`;
    const inGoodOrder = how === "killed" && stopping && (await this.#stop(life, true));
    await life.kill();
    await load.stop();
    client.close();
    this.repeated += client.repeated;
    this.operations += load.operations;
    if (inGoodOrder) return this.#gone("stopped", under);
    return this.#killed(life, how === "killed" ? under : `at ${self?.place}, ${under}`);
  }

  /**
   * Asks the server to stop, while it serves or starts. Returns false if a second signal or a kill cut the stop short.
   */
  async #stop(life: Life, serves = false): Promise<boolean> {
    const began = this.ledger.now();
    life.stop();
    const cut = this.#dice.weighted({ not: 7, again: 1, kill: 2 });
    if (cut !== "not") {
      await Promise.race([sleep(this.#dice.between(0, 60)), life.gone]);
      if (cut === "again") life.stop();
      else await life.kill();
    }
    await Promise.race([life.gone, sleep(STOP, undefined, { ref: false })]);
    if (life.ended === "0" && serves) return true;
    // Before it serves, or after a second signal, it ends at once.
    if (cut === "not" ? serves : !["0", "143", "SIGKILL", "SIGTERM"].includes(life.ended ?? "")) {
      this.#found({
        invariant: "stop",
        message: `the server was asked to stop ${Math.round(this.ledger.now() - began)} ms ago, and ${life.ended === undefined ? "did not" : `ended with ${life.ended}`}`,
        evidence: life.stderr,
      });
    }
    return false;
  }

  #start(dieAt?: Setup["dieAt"], room?: Slots): Life {
    const { plant } = this.#options;
    return new Life(this.#program, {
      data: join(this.#directory, "data"),
      effects: join(this.#directory, "effects.jsonl"),
      linger: LINGER,
      hosted: this.#options.hosted === true,
      ...(room === undefined ? {} : { slots: room }),
      ...(plant === undefined ? {} : { plant }),
      ...(dieAt === undefined ? {} : { dieAt }),
    });
  }

  /** Applies load for some time: longer if the machine is so slow that hardly anything has been acknowledged yet. */
  async #load(life: Life): Promise<void> {
    const { longest = 3000, least = 0 } = this.#options;
    await sleep(this.#dice.between(50, longest));
    const { runs, stateless } = this.ledger;
    while (runs.size + stateless.size < least && life.ended === undefined) await sleep(10);
  }

  /** Inspects the data of the dead server. */
  async #killed(life: Life, how: string): Promise<void> {
    await life.kill();
    return this.#gone("killed", how);
  }

  async #gone(what: "killed" | "stopped", how: string): Promise<void> {
    this.ledger.gone(what);
    const { kills, stops } = this.ledger;
    const count = this.#effects.read();
    const whole = (kills.length + stops.length) % 20 === 0;
    const threads = [...this.ledger.threads.keys()].slice(-2 * (this.#options.threads ?? 50));
    const only = whole ? undefined : new Set([...threads, ...[...this.ledger.machines.keys()].slice(-30)]);
    const stored = await this.#look(only);
    if (stored === undefined) return;
    this.#checkStored(stored);
    const ended = what === "stopped" ? endedByStop(stored, this.#effects.all) : [];
    const { all } = this.#effects;
    for (const one of [...finishedTasks(stored, all), ...storedResults(stored, all), ...ended]) {
      const key = `${one.run} ${one.task}`;
      if (!this.#finished.has(key)) this.#finished.set(key, one);
    }
    this.#checkEffects();
    this.#options.say?.(
      `${what === "killed" ? `kill ${kills.length}` : `stop ${stops.length}`} ${how}: ${this.ledger.runs.size} runs acknowledged and ` +
        `${this.ledger.stateless.size} without a thread, ${count} nodes begun, ` +
        `${stored.threads.length} threads looked through, ${this.violations.length} violations`,
    );
  }

  #checkStored(stored: Snapshot): void {
    for (const violation of [
      ...eventsAreContiguous(stored),
      ...stateIsTheFold(stored),
      ...indexesAgree(stored),
      ...recordsGrow(stored),
    ]) {
      this.#found(violation);
    }
  }

  async #look(only: ReadonlySet<string> | undefined): Promise<Snapshot | undefined> {
    try {
      return await snapshot(join(this.#directory, "data"), join(this.#directory, "copy"), only);
    } catch (error) {
      this.#found({
        invariant: "I6",
        message: `what the server left behind cannot be read: ${String(error)}`,
        evidence: error instanceof Error ? error.stack : undefined,
      });
      return undefined;
    }
  }

  #checkEffects(): void {
    for (const violation of nothingIsRepeated(this.#finished.values(), this.#effects.all))
      this.#found(violation);
    for (const violation of oneRunAtATime(this.#effects.all)) this.#found(violation);
  }

  /** Verifies a restarted server. If it dies meanwhile at its own failpoint, the results do not count. */
  async #verify(client: Client, life: Life, all: boolean): Promise<void> {
    const violations: Violation[] = [];
    const found = (violation: Violation) => violations.push(violation);
    try {
      const [dice, hooks, effects] = [this.#dice, this.#hooks, this.#effects];
      const verification = { client, ledger: this.ledger, dice, hooks, effects, found, all };
      await Promise.all([verify(verification), verifyStateless(verification)]);
      if (all) await verifyStatelessWebhooks(verification);
    } catch (error) {
      await Promise.race([life.gone, sleep(500)]);
      if (life.ended === undefined) {
        found({ invariant: "connection", message: `while looking: ${String(error)}`, evidence: life.stderr });
      }
    }
    if (life.ended === undefined) for (const violation of violations) this.#found(violation);
    else if (life.ended !== "SIGKILL") {
      this.#found({
        invariant: "crash",
        message: `the server ended by itself (${life.ended})`,
        evidence: life.stderr,
      });
    }
  }

  /** The last start, without disturbance: everything that was ever acknowledged is verified. */
  async #last(): Promise<void> {
    const life = this.#start();
    const port = await life.ready(BOOT);
    if (port === undefined) {
      this.#found({ invariant: "boot", message: "the last start did not come up", evidence: life.stderr });
      return life.kill();
    }
    const client = new Client(port);
    await this.#verify(client, life, true);
    this.#effects.read();
    this.#checkEffects();
    client.close();
    // Waits until the time for readers of temporary threads is over.
    await sleep(2 * LINGER);
    await life.kill();
    const stored = await this.#look(undefined);
    if (stored === undefined) return;
    this.#checkStored(stored);
    for (const violation of nothingHiddenIsLeft(stored)) this.#found(violation);
  }

  readonly #found = (violation: Violation): void => {
    if (this.#seen.has(violation.message)) return;
    this.#seen.add(violation.message);
    this.violations.push(violation);
  };
}
