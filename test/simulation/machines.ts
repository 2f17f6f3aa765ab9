import type { RunRecord } from "../../src/model/run.ts";
import { ServiceError } from "../../src/model/errors.ts";
import type { GraphDefinition } from "../../src/graph/definition.ts";
import { loadMachine } from "../../src/machines/exported-machine.ts";
import type { ThreadKey } from "../../src/model/thread.ts";
import type { SentEvent, SentMark } from "../chaos/checkers/machines.ts";
import { recorder } from "../fixtures/machines/recorder.ts";
import type { Sleep } from "./graph.ts";
import type { Observed } from "./observed.ts";
import type { SimulatedRandom } from "./random.ts";
import type { Life } from "./server.ts";

const KINDS = ["ADD", "ADD", "NOTE", "WORK", "WORK", "LATER", "LATER", "HAND", "HAND", "TICK"] as const;

/** Milliseconds: the longest time of a timer. */
const LONGEST = 300;

/** The number of events after which a machine is finished. */
const MOST_EVENTS = 25;

/** The largest number of machines in a world. */
const MOST_MACHINES = 4;

export interface SimulatedMachine {
  readonly key: ThreadKey;
  readonly sent: SentEvent[];
  /** Acknowledged: from then on it takes events. */
  hasBegun: boolean;
  /** Its last event is on its way. */
  isFinishing: boolean;
  /** Written into its state, one after the other. */
  readonly marks: SentMark[];
  /** A run of it is being cancelled, or its state changed: no events are sent to it until it goes on. */
  isHeld: boolean;
  /** That was asked for: it goes on when a run without input is acknowledged. */
  needsRun: boolean;
  /** Events of this life of the server whose answer is not there yet. */
  open: Set<SentEvent>;
}

/** The machine of the simulated worlds. Its effects outlive every server. */
export function simulatedMachine(observed: Observed, sleep: Sleep): GraphDefinition {
  const machine = recorder({
    work: async ({ n }, signal) => {
      const result = `${n}/${observed.life}-${observed.results.size}`;
      observed.results.add(result);
      await sleep(signal);
      return result;
    },
    note: (_, n) => void observed.noted.add(n),
  });
  return loadMachine(machine as never, [import.meta.filename]);
}

const GOES_ON = { assistant_id: "machine", input: null, multitask_strategy: "enqueue" } as const;

interface Deps {
  readonly observed: Observed;
  readonly random: SimulatedRandom;
  readonly life: () => Life | undefined;
  newId(): string;
  acknowledged<T>(promise: Promise<T>, then: (value: T) => void): void;
}

/** Clients of machines: they send events, and know the order of their acknowledgements. */
export class Machines {
  readonly all: SimulatedMachine[] = [];
  /** Acknowledged cancels of runs. */
  cancels = 0;
  readonly #deps: Deps;
  /** Counts requests and answers: what came before what. */
  #order = 0;
  #events = 0;
  #marks = 0;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  has({ thread }: ThreadKey): boolean {
    return this.all.some(({ key }) => key.thread === thread);
  }

  /** Sends one random request. */
  ask(): void {
    const { random } = this.#deps;
    const open = this.all.filter(({ hasBegun, isFinishing }) => hasBegun && !isFinishing);
    if (this.all.length < MOST_MACHINES && (open.length === 0 || random.chance(0.05))) this.#begin();
    else if (open.length > 0) this.#askOne(random.pick(open));
  }

  #askOne(machine: SimulatedMachine): void {
    const { random } = this.#deps;
    if (machine.isHeld) return;
    if (machine.open.size === 0 && (machine.needsRun || random.chance(0.25))) this.#hold(machine);
    else if (!machine.needsRun) this.#send(machine);
  }

  /** Lets the machines go on that are still held. */
  async end(): Promise<void> {
    const { service } = this.#deps.life() as Life;
    for (const { key, needsRun } of this.all) {
      // oxlint-disable-next-line no-await-in-loop -- one after the other, as any client
      if (needsRun) await service.runs.start(key, GOES_ON);
    }
  }

  /** The life of the server has ended: requests without an answer never get one. */
  over(): void {
    for (const machine of this.all) {
      machine.open = new Set();
      machine.isHeld = false;
    }
  }

  #begin(): void {
    const { observed, life, acknowledged, newId } = this.#deps;
    const key = { tenant: "_", thread: newId() };
    const machine = {
      key,
      sent: [],
      marks: [],
      hasBegun: false,
      isFinishing: false,
      isHeld: false,
      needsRun: false,
      open: new Set<SentEvent>(),
    };
    const { service } = life() as Life;
    const begun = service.runs.start(key, {
      assistant_id: "machine",
      if_not_exists: "create",
      input: { thread: key.thread },
    });
    this.all.push(machine);
    acknowledged(begun, ({ run_id }) => {
      observed.admit(key, run_id);
      observed.threads.add(key.thread);
      machine.hasBegun = true;
    });
  }

  /** Cancels the run of the last event or changes the state, and lets the machine go on after that. */
  #hold(machine: SimulatedMachine): void {
    const { random, life, acknowledged, observed } = this.#deps;
    const { key, marks } = machine;
    const { service } = life() as Life;
    const goOn = () => {
      const begun = service.runs.start(key, GOES_ON);
      const release = () => void (machine.isHeld = false);
      begun.catch(release);
      acknowledged(begun, ({ run_id }) => {
        observed.admit(key, run_id);
        machine.needsRun = false;
        release();
      });
    };
    machine.isHeld = true;
    if (machine.needsRun) return goOn();
    machine.needsRun = true;
    if (random.chance(0.5)) {
      const cancel = (run: string) => {
        const cancelled = service.runs.cancel(key, run, "interrupt");
        cancelled.catch(goOn);
        acknowledged(cancelled, () => {
          this.cancels++;
          goOn();
        });
      };
      return this.#sendOne(machine, random.pick(KINDS), cancel);
    }
    const mark = { n: ++this.#marks, acknowledged: false };
    marks.push(mark);
    const updated = service.states.update(key, { ns: "", id: null }, { values: { mark: mark.n } });
    updated.catch(goOn);
    acknowledged(updated, () => {
      mark.acknowledged = true;
      goOn();
    });
  }

  #send(machine: SimulatedMachine): void {
    const { random } = this.#deps;
    const { sent, open } = machine;
    const isLong = sent.length >= MOST_EVENTS || random.chance(0.03);
    // An event that comes after the last one would fail.
    machine.isFinishing = isLong && open.size === 0;
    this.#sendOne(machine, machine.isFinishing ? "FINISH" : random.pick(KINDS));
  }

  #sendOne(machine: SimulatedMachine, type: SentEvent["type"], then?: (run: string) => void): void {
    const { observed, random, life, acknowledged } = this.#deps;
    const { key, sent, open } = machine;
    const n = `${++this.#events}`;
    const event: SentEvent = { type, n, sent: ++this.#order, acknowledged: undefined };
    sent.push(event);
    open.add(event);
    const { service } = life() as Life;
    const answer = service.events.send(key, { type, n, ms: random.below(LONGEST) });
    const refused = (thrown: unknown) => {
      open.delete(event);
      const isRefused = thrown instanceof ServiceError && /^(?:resume|validation)\./.test(thrown.code);
      if (isRefused)
        observed.violation("I14", `event ${n} of thread ${key.thread} was refused: ${thrown.message}`);
    };
    answer.catch(refused);
    acknowledged(answer, ({ run_id }: RunRecord) => {
      open.delete(event);
      event.acknowledged = ++this.#order;
      event.run = run_id;
      observed.admit(key, run_id);
      then?.(run_id);
    });
  }
}
