import { setTimeout as sleep } from "node:timers/promises";
import type { SentEvent } from "./checkers/machines.ts";
import { ConnectionLost } from "./client.ts";
import type { RunRequests } from "./run-requests.ts";
import type { Ledger, MachineEntry } from "./ledger.ts";
import type { SeededRandom } from "./random.ts";

/** The relative frequency of each event. */
const MIX = { ADD: 6, NOTE: 3, WORK: 5, LATER: 4, HAND: 3, TICK: 3 } as const;

/** Milliseconds: the longest work of an actor, and the longest time of a timer. */
const LONGEST = { ADD: 0, NOTE: 0, WORK: 30, LATER: 800, HAND: 800, TICK: 300, FINISH: 0 } as const;

/** The number of machines that take events at the same time. */
const MACHINES = 10;

/** The number of events after which a machine is finished. */
const MOST_EVENTS = 30;

interface MachineLoadDeps {
  readonly requests: RunRequests;
  readonly ledger: Ledger;
  readonly dice: SeededRandom;
}

/** Load of machines: events are sent to them, also while a run is busy, until the last one ends them. */
export class MachineLoad {
  readonly #deps: MachineLoadDeps;

  constructor(deps: MachineLoadDeps) {
    this.#deps = deps;
  }

  async act(): Promise<void> {
    const { dice } = this.#deps;
    const machine = await this.#machine();
    if (machine.isFinishing || machine.isHeld) return;
    if (machine.clients === 0 && (machine.needsRun || dice.chance(0.1))) return this.#hold(machine);
    if (machine.needsRun) return;
    machine.clients++;
    try {
      const isLong = machine.sent.length >= MOST_EVENTS || dice.chance(0.03);
      // An event that comes after the last one would fail.
      if (isLong && machine.clients === 1) {
        machine.isFinishing = true;
        await this.#send(machine, "FINISH");
      } else if (dice.chance(0.3)) {
        await Promise.all([this.#send(machine), this.#send(machine)]);
      } else {
        for (let i = dice.between(1, 3); i > 0; i--) await this.#send(machine);
      }
    } finally {
      machine.clients--;
    }
  }

  /** Cancels a run or changes the state, while no other client sends events, and lets the machine go on after that. */
  async #hold(machine: MachineEntry): Promise<void> {
    const { dice } = this.#deps;
    machine.isHeld = true;
    try {
      if (!machine.needsRun) await (dice.chance(0.5) ? this.#cancel(machine) : this.#mark(machine));
      await this.#goOn(machine);
    } finally {
      machine.isHeld = false;
    }
  }

  async #cancel(machine: MachineEntry): Promise<void> {
    const { requests, dice, ledger } = this.#deps;
    const { thread } = machine;
    for (let i = dice.between(1, 2); i > 0; i--) await this.#send(machine);
    const run = machine.sent.at(-1)?.run;
    if (run === undefined) return;
    await sleep(dice.between(0, 20));
    machine.needsRun = true;
    const disturbance = ledger.disturb(thread, "interrupt", run);
    const path = `/threads/${thread}/runs/${run}/cancel?wait=${dice.pick([0, 1])}&action=interrupt`;
    await requests.json("POST", path);
    disturbance.until = ledger.now();
  }

  async #mark(machine: MachineEntry): Promise<void> {
    const { requests, ledger } = this.#deps;
    const { thread, marks } = machine;
    const mark = { n: ledger.nextMark(), acknowledged: false };
    marks.push(mark);
    machine.needsRun = true;
    const { status } = await requests.json("POST", `/threads/${thread}/state`, { values: { mark: mark.n } });
    mark.acknowledged = status === 200;
  }

  async #goOn(machine: MachineEntry): Promise<void> {
    const { requests, dice, ledger } = this.#deps;
    const { thread } = machine;
    if (!machine.needsRun) return;
    const order = {
      at: `/threads/${thread}`,
      what: "go on",
      body: { assistant_id: "machine", input: null, multitask_strategy: "enqueue", after_seconds: undefined },
      note: (run: string, sent: number, hooked: boolean) =>
        ledger.acknowledge(thread, run, "go on", sent, { hooked }),
    };
    const begun = dice.chance(0.5) ? await requests.create(order) : (await requests.wait(order))?.entry;
    if (begun !== undefined) machine.needsRun = false;
  }

  async #machine(): Promise<MachineEntry> {
    const { dice, ledger } = this.#deps;
    const open = [...ledger.machines.values()].filter(({ isFinishing }) => !isFinishing);
    if (open.length >= MACHINES) return dice.pick(open);
    return this.#begin();
  }

  async #begin(): Promise<MachineEntry> {
    const { requests, dice, ledger } = this.#deps;
    const made = await requests.json("POST", "/threads", {});
    const thread = (made.json as { thread_id?: string }).thread_id;
    if (made.status !== 200 || thread === undefined) throw new ConnectionLost("no thread");
    const order = {
      at: `/threads/${thread}`,
      what: "machine",
      body: { assistant_id: "machine", input: { thread }, after_seconds: undefined },
      note: (run: string, sent: number, hooked: boolean) =>
        ledger.acknowledge(thread, run, "machine", sent, { hooked }),
    };
    const machine: MachineEntry = {
      thread,
      sent: [],
      marks: [],
      clients: 0,
      isFinishing: false,
      isHeld: false,
      needsRun: false,
    };
    // Its events may also come while its first run is in progress.
    const begun = dice.chance(0.5) ? await requests.create(order) : (await requests.wait(order))?.entry;
    if (begun === undefined) throw new ConnectionLost("no machine");
    ledger.machines.set(thread, machine);
    return machine;
  }

  async #send({ thread, sent }: MachineEntry, type: keyof typeof LONGEST = this.#type()): Promise<void> {
    const { requests, dice, ledger } = this.#deps;
    const n = `${ledger.nextEvent()}`;
    const event: SentEvent = { type, n, sent: ledger.now(), acknowledged: undefined };
    sent.push(event);
    const body = { type, n, ms: dice.between(0, LONGEST[type]) };
    const { status, json } = await requests.json("POST", `/threads/${thread}/events`, body);
    if (status !== 202) return;
    event.acknowledged = ledger.now();
    const { run_id } = json as { run_id: string };
    event.run = run_id;
    const entry = ledger.acknowledge(thread, run_id, "event", event.sent);
    if (dice.chance(0.1)) await requests.mirror(entry);
  }

  #type(): keyof typeof MIX {
    return this.#deps.dice.weighted(MIX);
  }
}
