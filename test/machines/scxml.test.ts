import { describe, expect, test } from "vitest";
import * as xstate from "xstate";
import { loadMachine } from "../../src/machines/exported-machine.ts";
import type {
  Effect,
  MachineEvent,
  StoredSnapshot,
  MacrostepResult,
} from "../../src/machines/machine-driver.ts";
import type { Machine, XStateLibrary } from "../../src/machines/xstate-types.ts";
import { createXState5Driver } from "../../src/machines/xstate5-driver.ts";
import { ServiceError } from "../../src/model/errors.ts";
import { MemoryKeyValueStore } from "../../src/storage/memory-key-value-store.ts";
import { draftOf } from "../actors/draft.ts";
import { Server } from "../actors/server.ts";
import { scxmlCases, type ScxmlCase } from "./scxml-cases.ts";

/** What is stored of a machine between two transitions. */
interface Stored {
  readonly now: number;
  readonly snapshot: StoredSnapshot;
  readonly timers: readonly { readonly id?: string; readonly due: number; readonly event: MachineEvent }[];
}

/** A machine that exists as text alone between any two transitions: each makes a driver of its own, as after a restart. */
class StoredMachine {
  readonly #machine: Machine;
  #text: string;

  constructor(machine: xstate.AnyStateMachine) {
    this.#machine = machine as unknown as Machine;
    const taken = this.#driver().begin(undefined);
    this.#text = JSON.stringify({ now: 0, snapshot: taken.snapshot, timers: [] } satisfies Stored);
    this.#apply(taken);
  }

  get stored(): Stored {
    return JSON.parse(this.#text) as Stored;
  }

  send(event: MachineEvent): void {
    const { snapshot } = this.stored;
    if (snapshot.rest["status"] === "active") this.#apply(this.#driver().take(snapshot, { to: [], event }));
  }

  pass(time: number): void {
    const until = this.stored.now + time;
    for (;;) {
      const { now, timers } = this.stored;
      const [next] = timers.toSorted((a, b) => a.due - b.due);
      if (next === undefined || next.due > until) {
        this.#store({ now: until });
        return;
      }
      this.#store({ now: Math.max(now, next.due), timers: timers.filter((one) => one !== next) });
      this.send(next.event);
    }
  }

  #driver() {
    return createXState5Driver(xstate as unknown as XStateLibrary, this.#machine);
  }

  #store(change: Partial<Stored>): void {
    this.#text = JSON.stringify({ ...this.stored, ...change });
  }

  #apply({ snapshot, effects }: MacrostepResult): void {
    this.#store({ snapshot });
    for (const effect of effects) this.#timer(effect);
  }

  #timer(effect: Effect): void {
    const { now, timers } = this.stored;
    if (effect.kind === "timer") {
      const { id, delay, event } = effect;
      this.#store({ timers: [...timers, { ...(id !== undefined && { id }), due: now + delay, event }] });
    } else if (effect.kind === "cancel") this.#store({ timers: timers.filter(({ id }) => id !== effect.id) });
  }
}

/** The same machine as an actor that is never interrupted. */
function uninterrupted({ machine, steps }: ScxmlCase) {
  const clock = new xstate.SimulatedClock();
  const actor = xstate.createActor(machine, { clock });
  actor.start();
  for (const [event] of steps) {
    if (typeof event === "number") clock.increment(event);
    else if (actor.getSnapshot().status === "active") actor.send({ type: event });
  }
  return JSON.parse(JSON.stringify(actor.getPersistedSnapshot())) as { readonly value: unknown };
}

/** The same machine in a server that is killed after each step, and started again on what it has stored. */
async function killed({ machine, steps }: ScxmlCase) {
  const kv = new MemoryKeyValueStore();
  const start = (options: object = {}) =>
    Server.start(loadMachine(machine as never, [import.meta.filename]), { kv, ...options });
  let server = await start();
  const key = await server.thread();
  const run = await server.admit(key, { input: {} });
  await server.do(server.system.settled(key, run.run_id));
  const values = [(await server.values(key))["__state__"]];
  for (const [index, [event]] of steps.entries()) {
    server.scheduler.kill();
    server = await start({ seed: index + 2, at: server.clock.now() });
    if (typeof event === "number") await server.scheduler.advance(event);
    else await take(server, key, event);
    await server.scheduler.settle();
    values.push((await server.values(key))["__state__"]);
  }
  return { values, last: await server.values(key) };
}

async function take(server: Server, key: Parameters<Server["values"]>[0], type: string): Promise<void> {
  const draft = draftOf(
    server.newId(),
    { input: null, command: { resume: { type } }, event: true },
    "enqueue",
  );
  try {
    const { run_id } = await server.do(server.system.admit(key, draft));
    await server.do(server.system.settled(key, run_id));
  } catch (cause) {
    // The machine does not handle it: XState ignores it, a server refuses it.
    if (!(cause instanceof ServiceError)) throw cause;
  }
}

describe("SCXML, with the machine stored and restored between any two transitions", () => {
  test.each(scxmlCases)("$name", (given) => {
    const run = new StoredMachine(given.machine);
    const values = [run.stored.snapshot.value];
    for (const [event] of given.steps) {
      if (typeof event === "number") run.pass(event);
      else run.send({ type: event });
      values.push(run.stored.snapshot.value);
    }
    expect(values).toEqual([given.first, ...given.steps.map(([, value]) => value)]);
    const { rest, ...snapshot } = run.stored.snapshot;
    expect({ ...rest, ...snapshot }).toEqual(uninterrupted(given));
    if (given.log !== undefined) expect(snapshot.context["log"]).toEqual(given.log);
  });
});

describe("SCXML, in a server that is killed between any two transitions", () => {
  test.each(scxmlCases)("$name", async (given) => {
    const { values, last } = await killed(given);
    expect(values).toEqual([given.first, ...given.steps.map(([, value]) => value)]);
    const { __state__: value, __snapshot__: stored } = last;
    const { rest } = stored as { readonly rest: object };
    const context = Object.fromEntries(Object.entries(last).filter(([name]) => !name.startsWith("__")));
    expect({ ...rest, value, context }).toEqual(uninterrupted(given));
  });
});
