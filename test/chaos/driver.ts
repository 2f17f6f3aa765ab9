import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { nothingHiddenIsLeft } from "./checkers/alone.ts";
import {
  endedByStop,
  finishedTasks,
  nothingIsRepeated,
  oneRunAtATime,
  type Finished,
} from "./checkers/repeats.ts";
import { eventsAreContiguous, indexesAgree, stateIsTheFold } from "./checkers/stored.ts";
import { Client } from "./client.ts";
import { Effects } from "./effects.ts";
import { failpoint, slots } from "./faults.ts";
import { Hooks } from "./hooks.ts";
import { Ledger, type Violation } from "./ledger.ts";
import { Load } from "./load.ts";
import { servedModes } from "./modes.ts";
import { Life, type Setup, type Slots } from "./process.ts";
import { compile, type Program } from "../fixtures/compile.ts";
import { Dice } from "./random.ts";
import { snapshot, type Snapshot } from "./snapshot.ts";
import { verify } from "./verify.ts";
import { verifyAlone, verifyAloneTold } from "./verify-alone.ts";

export interface ChaosOptions {
  readonly kills: number;
  /** Stops in good order, beside them. */
  readonly stops?: number;
  readonly seed: number;
  /** Ends after the kill that comes later than this. */
  readonly seconds?: number;
  readonly threads?: number;
  readonly clients?: number;
  /** Longest time under load before a kill, milliseconds. */
  readonly longest?: number;
  /** Runs that are acknowledged before the first kill under load, however long that takes. */
  readonly least?: number;
  readonly plant?: string;
  /** Do some threads have the same graph in LangGraph.js? */
  readonly hosted?: boolean;
  readonly say?: (line: string) => void;
}

export interface Outcome {
  readonly seed: number;
  readonly kills: number;
  readonly stops: number;
  readonly operations: number;
  readonly runs: number;
  /** Of them without a thread. */
  readonly alone: number;
  readonly events: number;
  readonly violations: readonly Violation[];
  /** The data directory, kept when something was found. */
  readonly directory: string | undefined;
}

/** Milliseconds that a start may take, and that work may take to come to rest. */
const BOOT = 120_000;

/** Milliseconds after which a server has to be gone that was asked to stop: its nodes take a tenth of a second. */
const STOP = 9_000;

/** Milliseconds that the test's server keeps what was made for one run, for readers. */
const LINGER = 1_000;

/** Kills a server under load again and again, and holds what it says afterwards against what it had promised. */
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
    runs: driver.ledger.runs.size + driver.ledger.alone.size,
    alone: driver.ledger.alone.size,
    events: driver.events(),
    violations,
    directory: violations.length === 0 ? undefined : directory,
  };
}

class Driver {
  readonly ledger = new Ledger();
  readonly violations: Violation[] = [];
  operations = 0;
  readonly #options: ChaosOptions;
  readonly #dice: Dice;
  readonly #directory: string;
  readonly #program: Program;
  readonly #effects: Effects;
  readonly #hooks: Hooks;
  #hook = "";
  readonly #finished = new Map<string, Finished>();
  #modes: readonly string[] = [];
  readonly #seen = new Set<string>();

  constructor(options: ChaosOptions, directory: string, program: Program) {
    this.#options = options;
    this.#program = program;
    this.#dice = new Dice(options.seed);
    this.#directory = directory;
    this.#hooks = new Hooks(this.#dice);
    this.#effects = new Effects(join(directory, "effects.jsonl"));
  }

  events(): number {
    let count = 0;
    for (const { streams } of [...this.ledger.runs.values(), ...this.ledger.alone.values()]) {
      for (const { frames } of streams) count += frames.length;
    }
    return count;
  }

  async run(): Promise<void> {
    const { seconds = Number.POSITIVE_INFINITY } = this.#options;
    const more = () => this.#left.kills + this.#left.stops > 0 && this.ledger.now() < seconds * 1000;
    this.#hook = await this.#hooks.open();
    while (this.violations.length === 0 && more()) await this.#cycle();
    // Also when something was found: what the server says of it now belongs to the evidence.
    await this.#last();
    this.#hooks.close();
  }

  /** How often it is still to be killed, and to stop. */
  get #left(): { readonly kills: number; readonly stops: number } {
    const { kills, stops = 0 } = this.#options;
    const left = (all: number, done: number) => Math.max(0, all - done);
    return { kills: left(kills, this.ledger.kills.length), stops: left(stops, this.ledger.stops.length) };
  }

  /** Start, look, load, kill or stop, look. */
  async #cycle(): Promise<void> {
    const first = this.ledger.kills.length + this.ledger.stops.length === 0;
    const { kills, stops } = this.#left;
    const stopping = this.#dice.chance(stops / (kills + stops));
    const self = !first && !stopping && this.#dice.chance(0.25) ? failpoint(this.#dice) : undefined;
    const room = slots(this.#dice);
    const life = this.#start(self, room);
    if (!first && this.#dice.chance(0.1)) {
      // In the middle of starting or recovering, wherever that is just now.
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
    this.operations += load.operations;
    if (inGoodOrder) return this.#gone("stopped", under);
    return this.#killed(life, how === "killed" ? under : `at ${self?.place}, ${under}`);
  }

  /** Asks the server to stop, as it serves or starts. False: it was cut short by a second signal, or killed. */
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
    // Before it serves, and asked twice, it ends at once.
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

  /** Some time under load: more where the machine is so slow that hardly anything has been promised yet. */
  async #load(life: Life): Promise<void> {
    const { longest = 3000, least = 0 } = this.#options;
    await sleep(this.#dice.between(50, longest));
    const { runs, alone } = this.ledger;
    while (runs.size + alone.size < least && life.ended === undefined) await sleep(10);
  }

  /** Looks at what the dead server has left behind. */
  async #killed(life: Life, how: string): Promise<void> {
    await life.kill();
    return this.#gone("killed", how);
  }

  async #gone(what: "killed" | "stopped", how: string): Promise<void> {
    this.ledger.gone(what);
    const { kills, stops } = this.ledger;
    const count = this.#effects.read();
    const whole = (kills.length + stops.length) % 20 === 0;
    const known = [...this.ledger.threads.keys()];
    const only = whole ? undefined : new Set(known.slice(-2 * (this.#options.threads ?? 50)));
    const stored = await this.#look(only);
    if (stored === undefined) return;
    this.#checkStored(stored);
    const ended = what === "stopped" ? endedByStop(stored, this.#effects.all) : [];
    for (const one of [...finishedTasks(stored, this.#effects.all), ...ended]) {
      const key = `${one.run} ${one.task}`;
      if (!this.#finished.has(key)) this.#finished.set(key, one);
    }
    this.#checkEffects();
    this.#options.say?.(
      `${what === "killed" ? `kill ${kills.length}` : `stop ${stops.length}`} ${how}: ${this.ledger.runs.size} runs acknowledged and ` +
        `${this.ledger.alone.size} without a thread, ${count} nodes begun, ` +
        `${stored.threads.length} threads looked through, ${this.violations.length} violations`,
    );
  }

  #checkStored(stored: Snapshot): void {
    for (const violation of [
      ...eventsAreContiguous(stored),
      ...stateIsTheFold(stored),
      ...indexesAgree(stored),
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

  /** Looks at a server that has come back. When it died meanwhile, by a failpoint of its own, nothing counts. */
  async #verify(client: Client, life: Life, all: boolean): Promise<void> {
    const violations: Violation[] = [];
    const found = (violation: Violation) => violations.push(violation);
    try {
      const [dice, hooks, effects] = [this.#dice, this.#hooks, this.#effects];
      const verification = { client, ledger: this.ledger, dice, hooks, effects, found, all };
      await Promise.all([verify(verification), verifyAlone(verification)]);
      if (all) await verifyAloneTold(verification);
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

  /** One more start, with nobody to disturb it: everything that was ever promised is looked at. */
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
    // Until nobody may come back to read any more.
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
