import { describe, expect, test, vi } from "vitest";
import { graph, list } from "../../src/index.ts";
import { type Client, lines } from "./support/clients.ts";
import { gated } from "./support/latches.ts";
import { serve } from "./support/server.ts";

const fails = graph({
  state: { log: list<string>() },
  nodes: {
    bad: async () => {
      throw new TypeError("kaboom");
    },
  },
  edges: { start: "bad" },
});

/** A thread, and the actions of a test on it. */
class World {
  readonly client: Client;
  readonly thread: string;
  readonly gate: ReturnType<typeof gated>;
  /** The ids of runs, in the order of their requests. */
  readonly runs: string[] = [];

  constructor(client: Client, thread: string, gate: ReturnType<typeof gated>) {
    this.client = client;
    this.thread = thread;
    this.gate = gate;
  }

  async create(assistant: string, options: Parameters<Client["runs"]["create"]>[2] = {}): Promise<string> {
    const run = await this.client.runs.create(this.thread, assistant, { input: {}, ...options });
    this.runs.push(run.run_id);
    return run.run_id;
  }

  /** A run that waits half way. */
  async hold(name: string): Promise<string> {
    const id = await this.create("held", { input: { name }, multitaskStrategy: "enqueue" });
    await this.gate.waits(name);
    return id;
  }

  async end(assistant: string, options = {}): Promise<void> {
    await this.client.runs.join(this.thread, await this.create(assistant, options));
  }

  join(run: string): Promise<unknown> {
    return this.client.runs.join(this.thread, run);
  }

  async status(run: string): Promise<string> {
    try {
      return (await this.client.runs.get(this.thread, run)).status;
    } catch (cause) {
      return String((cause as { status?: number }).status);
    }
  }

  async now(): Promise<{ runs: string[]; thread: string }> {
    const runs = await Promise.all(this.runs.map((run) => this.status(run)));
    return { runs, thread: (await this.client.threads.get(this.thread)).status };
  }
}

const topic = { input: { topic: "tea" } };
const resume = { input: null, command: { resume: { ok: true } } };

/** The actions, then the statuses of the runs in order, and of the thread. */
const table: readonly (readonly [
  what: string,
  act: (world: World) => Promise<unknown>,
  runs: readonly string[],
  thread: string,
])[] = [
  ["nothing has run yet", async () => undefined, [], "idle"],
  ["a run executes", (w) => w.hold("a"), ["running"], "busy"],
  [
    "it finishes",
    async (w) => {
      const run = await w.hold("a");
      w.gate.open("a");
      await w.join(run);
    },
    ["success"],
    "idle",
  ],
  ["it pauses at an interrupt", (w) => w.end("approval", topic), ["success"], "interrupted"],
  [
    "it is answered",
    async (w) => {
      await w.end("approval", topic);
      await w.end("approval", resume);
    },
    ["success", "success"],
    "idle",
  ],
  [
    "it pauses before a node",
    (w) => w.end("held", { interruptBefore: ["hold"] }),
    ["success"],
    "interrupted",
  ],
  ["it pauses after a node", (w) => w.end("held", { interruptAfter: ["begin"] }), ["success"], "interrupted"],
  [
    "it goes on from there",
    async (w) => {
      await w.end("held", { input: { name: "a" }, interruptBefore: ["hold"] });
      w.gate.open("a");
      await w.end("held", { input: null });
    },
    ["success", "success"],
    "idle",
  ],
  [
    "a new input supersedes the question",
    async (w) => {
      await w.end("approval", topic);
      await w.hold("a");
    },
    ["success", "running"],
    "busy",
  ],
  ["it throws", (w) => w.end("fails"), ["error"], "error"],
  [
    "another one runs after the error",
    async (w) => {
      await w.end("fails");
      await w.hold("a");
    },
    ["error", "running"],
    "busy",
  ],
  [
    "and finishes",
    async (w) => {
      await w.end("fails");
      w.gate.open("a");
      await w.end("held", { input: { name: "a" } });
    },
    ["error", "success"],
    "idle",
  ],
  [
    "it is cancelled",
    async (w) => w.client.runs.cancel(w.thread, await w.hold("a"), true),
    ["interrupted"],
    "idle",
  ],
  [
    "it is rolled back",
    async (w) => w.client.runs.cancel(w.thread, await w.hold("a"), true, "rollback"),
    ["404"],
    "idle",
  ],
  [
    "another is refused",
    async (w) => {
      await w.hold("a");
      await expect(w.create("held", { multitaskStrategy: "reject" })).rejects.toMatchObject({ status: 409 });
    },
    ["running"],
    "busy",
  ],
  [
    "another waits behind it",
    async (w) => {
      await w.hold("a");
      await w.create("held", { input: { name: "b" }, multitaskStrategy: "enqueue" });
    },
    ["running", "pending"],
    "busy",
  ],
  [
    "the one that waits takes its turn",
    async (w) => {
      const run = await w.hold("a");
      await w.create("held", { input: { name: "b" }, multitaskStrategy: "enqueue" });
      w.gate.open("a");
      await w.join(run);
      await w.gate.waits("b");
    },
    ["success", "running"],
    "busy",
  ],
  [
    "the one that waits is cancelled",
    async (w) => {
      await w.hold("a");
      const queued = await w.create("held", { input: { name: "b" }, multitaskStrategy: "enqueue" });
      await w.client.runs.cancel(w.thread, queued, true);
    },
    ["running", "interrupted"],
    "busy",
  ],
  [
    "the one that waits behind a pause runs",
    async (w) => {
      const options = { input: { name: "a" }, interruptAfter: ["hold"] };
      await w.create("held", options);
      await w.gate.waits("a");
      const queued = await w.create("held", { input: { name: "b" }, multitaskStrategy: "enqueue" });
      w.gate.open("a");
      w.gate.open("b");
      await w.join(queued);
    },
    ["success", "success"],
    "idle",
  ],
  [
    "another interrupts it, and all that wait",
    async (w) => {
      await w.hold("a");
      await w.create("held", { input: { name: "b" }, multitaskStrategy: "enqueue" });
      await w.create("held", { input: { name: "c" }, multitaskStrategy: "interrupt" });
      await w.gate.waits("c");
    },
    ["interrupted", "interrupted", "running"],
    "busy",
  ],
  [
    "another rolls it back, and all that wait",
    async (w) => {
      await w.hold("a");
      await w.create("held", { input: { name: "b" }, multitaskStrategy: "enqueue" });
      await w.create("held", { input: { name: "c" }, multitaskStrategy: "rollback" });
      await w.gate.waits("c");
    },
    ["404", "404", "running"],
    "busy",
  ],
];

describe.each(lines)("statuses over %s", (_, connect) => {
  test.each(table)("%s", async (_what, act, runs, thread) => {
    const gate = gated();
    const { url } = await serve({ graphs: { held: gate.held, fails } });
    const client = connect(url);
    const world = new World(client, (await client.threads.create()).thread_id, gate);
    await act(world);
    await vi.waitFor(async () => expect(await world.now()).toEqual({ runs, thread }), { timeout: 30_000 });
  });
});
