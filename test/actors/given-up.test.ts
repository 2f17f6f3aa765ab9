import { describe, expect, test } from "vitest";
import type { SystemLimits } from "../../actors/create-system.ts";
import { interpretStatechart } from "../../actors/statechart-interpreter.ts";
import { xstateInterpreter } from "./xstate-interpreter.ts";
import { graph, list } from "../../src/index.ts";
import type { RunKwargs, RunRecord } from "../../src/model/run.ts";
import { threadStatusOf, type ThreadKey } from "../../src/model/thread.ts";
import { MemoryKeyValueStore } from "../../src/storage/memory-key-value-store.ts";
import type { SimulatedScheduler } from "../simulation/scheduler.ts";
import { Server } from "./server.ts";

const never = () => new Promise<never>(() => undefined);
const resume = (answer: unknown) => ({ input: null, command: { resume: answer } });

/** Servers that are started in sequence on one storage. What they run may end the process in the middle. */
class Lives {
  readonly #kv = new MemoryKeyValueStore();
  readonly #graph: unknown;
  readonly #limits: Partial<SystemLimits>;
  #server: Server | undefined;
  #scheduler: SimulatedScheduler | undefined;
  #killed = false;
  #seed = 0;

  constructor(definition: unknown, attempts: number) {
    this.#graph = definition;
    this.#limits = { attempts };
  }

  get server(): Server {
    if (this.#server === undefined) throw new Error("no server was started");
    return this.#server;
  }

  /** From now on nothing of the running server runs any more. */
  readonly kill = () => {
    this.#killed = true;
    this.#scheduler?.kill();
  };

  async start(): Promise<void> {
    this.#killed = false;
    const starting = Server.start(this.#graph, {
      kv: this.#kv,
      limits: this.#limits,
      seed: ++this.#seed,
      born: (scheduler) => (this.#scheduler = scheduler),
    });
    try {
      this.#server = await starting;
    } catch (thrown) {
      // A run that recovery starts may end the server before recovery is complete.
      if (!this.#killed) throw thrown;
    }
    await this.#scheduler?.settle();
  }

  async admit(key: ThreadKey, kwargs: Partial<RunKwargs>): Promise<RunRecord> {
    const run = await this.server.admit(key, kwargs);
    await this.server.scheduler.settle();
    return run;
  }

  /** Starts servers until the run has ended. Returns how many were needed. */
  async untilEnded(key: ThreadKey, run: RunRecord): Promise<number> {
    for (let lives = 1; lives < 10; lives++) {
      await this.start();
      if (!this.#killed && (await this.server.record(key, run))?.ended_at !== null) return lives;
    }
    throw new Error("the run does not end");
  }

  async look(key: ThreadKey) {
    const { journal } = this.server.storage;
    const thread = await journal.thread(key);
    if (thread === undefined) throw new Error("the thread is gone");
    const at = thread.checkpoint;
    const head = at === null ? undefined : await journal.checkpoint(key, "", at);
    const waiting = Object.values(thread.interrupts).flat();
    return {
      status: threadStatusOf(thread),
      next: head?.next.map(({ name }) => name) ?? [],
      values: await this.server.values(key),
      waiting: waiting.map(({ value }) => value),
    };
  }

  async goesOn(key: ThreadKey, kwargs: Partial<RunKwargs>) {
    const { run_id } = await this.server.admit(key, kwargs);
    return this.server.do(this.server.system.settled(key, run_id));
  }
}

describe.each(["sync", "async", "exit"] as const)("a run that is given up, durability %s", (durability) => {
  test.each([1, 2])("keeps its input, after %i attempts", async (attempts) => {
    let deadly = true;
    const work = graph({
      state: { log: list<string>() },
      nodes: {
        go: async () => {
          if (!deadly) return { log: ["went"] };
          lives.kill();
          return never();
        },
      },
      edges: { start: "go" },
    });
    const lives = new Lives(work, attempts);
    await lives.start();
    const key = await lives.server.thread();
    const run = await lives.admit(key, { input: { log: ["asked"] }, durability });
    expect(await lives.untilEnded(key, run)).toBe(attempts);
    const record = await lives.server.record(key, run);
    expect(record).toMatchObject({
      status: "error",
      error: {
        error: "Error",
        message: `Run ${run.run_id} exceeded max attempts (runs.max_attempts): ${
          attempts === 1 ? "1 attempt" : "2 attempts in a row"
        } ended before a step was stored: the server ended (killed, out of memory, or process.exit in a node), or the step could not be stored; the server's log says which`,
      },
    });
    expect(await lives.look(key)).toEqual({
      status: "error",
      next: ["go"],
      values: { log: ["asked"] },
      waiting: [],
    });
    const facts = await lives.server.facts(key, run);
    expect(facts.at(-1)).toMatchObject({ t: "error", error: record?.error });

    deadly = false;
    await lives.start();
    expect((await lives.goesOn(key, { input: null, durability }))?.status).toBe("success");
    expect(await lives.look(key)).toMatchObject({ next: [], values: { log: ["asked", "went"] } });
  });

  test("keeps an answer", async () => {
    let deadly = true;
    const work = graph({
      state: { log: list<unknown>() },
      nodes: {
        ask: async (_, ctx) => {
          const answer = await ctx.interrupt("well?");
          if (!deadly) return { log: [answer] };
          lives.kill();
          return never();
        },
      },
      edges: { start: "ask" },
    });
    const lives = new Lives(work, 1);
    await lives.start();
    const key = await lives.server.thread();
    await lives.admit(key, { input: { log: ["asked"] }, durability });
    expect(await lives.look(key)).toMatchObject({ status: "interrupted", waiting: ["well?"] });
    const run = await lives.admit(key, { ...resume("yes"), durability });
    await lives.untilEnded(key, run);
    expect(await lives.look(key)).toEqual({
      status: "error",
      next: ["ask"],
      values: { log: ["asked"] },
      waiting: [],
    });

    deadly = false;
    expect((await lives.goesOn(key, { input: null, durability }))?.status).toBe("success");
    expect(await lives.look(key)).toMatchObject({ next: [], values: { log: ["asked", "yes"] } });
  });
});

test("a run that is given up keeps where an earlier attempt got to", async () => {
  let deadly = true;
  let began = 0;
  const work = graph({
    state: { log: list<string>() },
    nodes: {
      one: async () => {
        began++;
        return { log: ["one"] };
      },
      two: async () => {
        if (!deadly) return { log: ["two"] };
        return never();
      },
    },
    edges: { start: "one", one: "two" },
  });
  const lives = new Lives(work, 1);
  await lives.start();
  const key = await lives.server.thread();
  const run = await lives.admit(key, { input: { log: ["asked"] } });
  lives.kill();
  await lives.untilEnded(key, run);
  expect(began).toBe(1);
  expect(await lives.look(key)).toEqual({
    status: "error",
    next: ["two"],
    values: { log: ["asked", "one"] },
    waiting: [],
  });

  deadly = false;
  expect((await lives.goesOn(key, { input: null }))?.status).toBe("success");
  expect(await lives.look(key)).toMatchObject({ next: [], values: { log: ["asked", "one", "two"] } });
  expect(began).toBe(1);
});

test("a run whose first step ends the process comes to its end all the same", async () => {
  let deadly = true;
  const work = graph({
    state: { log: list<string>() },
    nodes: { go: async () => ({ log: ["went"] }) },
    edges: {
      start: () => {
        if (deadly) {
          lives.kill();
          throw new Error("killed");
        }
        return "go";
      },
    },
  });
  const lives = new Lives(work, 2);
  await lives.start();
  const key = await lives.server.thread();
  const run = await lives.admit(key, { input: { log: ["asked"] } });
  expect(await lives.untilEnded(key, run)).toBe(4);
  expect(await lives.server.record(key, run)).toMatchObject({ status: "error", attempt: 5 });
  expect(await lives.look(key)).toMatchObject({ status: "error", next: [] });
  deadly = false;
  expect((await lives.goesOn(key, { input: { log: ["again"] } }))?.status).toBe("success");
});

const one = graph({
  state: { log: list<string>() },
  nodes: { n: () => ({ log: ["n"] }) },
  edges: { start: "n" },
});

test.each([
  ["", interpretStatechart],
  [", with XState's own interpreter", xstateInterpreter],
] as const)(
  "a fault in a task's actor gives the thread up, and another attempt ends the run%s",
  async (_, interpret) => {
    let faults = 0;
    const server = await Server.start(one, {
      interpret,
      hosted: (host) => ({
        close: () => host.close(),
        run: (call, io) => {
          if (++faults === 1) throw new TypeError("a fault in the host");
          return host.run(call, io);
        },
      }),
    });
    const key = await server.thread();
    const run = await server.admit(key);
    await server.scheduler.advance(5_000);
    expect(await server.record(key, run)).toMatchObject({ status: "success", attempt: 2 });
    expect(await server.values(key)).toEqual({ log: ["n"] });
  },
);
