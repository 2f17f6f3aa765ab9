import { setTimeout as sleep } from "node:timers/promises";
import { MachineLoad } from "./machine-load.ts";
import { StatelessLoad } from "./stateless-load.ts";
import { RunRequests, type RunRequestsDeps, type RequestedRun } from "./run-requests.ts";
import { ConnectionLost } from "./client.ts";
import type { Disturbance, RunEntry } from "./ledger.ts";

export const TERMINAL = new Set(["success", "error", "timeout", "interrupted"]);

/** The relative frequency of each action of the clients. */
const MIX = {
  wait: 20,
  stream: 25,
  background: 12,
  enqueue: 10,
  interrupt: 6,
  rollback: 5,
  cancel: 8,
  leave: 6,
  ask: 10,
  stateless: 30,
  read: 10,
  machine: 30,
} as const;

export interface LoadDeps extends RunRequestsDeps {
  /** The number of threads to choose from. */
  readonly threads: number;
  /** Called when an action was cut short by a lost connection, and goes on with the next one. Absent: that is a fault. */
  readonly onLost?: () => void;
}

/** Clients that perform a mix of actions on a few threads until they are stopped, and record everything. */
export class Load {
  readonly #deps: LoadDeps;
  readonly #requests: RunRequests;
  readonly #stateless: StatelessLoad;
  readonly #machines: MachineLoad;
  #stopped = false;
  #pending: Promise<void>[] = [];
  operations = 0;

  constructor(deps: LoadDeps) {
    this.#deps = deps;
    this.#requests = new RunRequests(deps);
    this.#stateless = new StatelessLoad({ ...deps, requests: this.#requests });
    this.#machines = new MachineLoad({ ...deps, requests: this.#requests });
  }

  start(clients: number): void {
    this.#pending = Array.from({ length: clients }, () => this.#run());
  }

  /** Starts no new action. Resolves when every request has been answered. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#pending);
  }

  /** The server is about to be killed: from now on a broken connection is not a fault. */
  expectCut(): void {
    this.#stopped = true;
    this.#requests.expectCut();
  }

  async #run(): Promise<void> {
    const { dice, ledger, report } = this.#deps;
    while (!this.#stopped) {
      try {
        await this.#act();
        this.operations++;
      } catch (error) {
        if (!(error instanceof ConnectionLost)) throw error;
        if (this.#requests.over) return;
        if (this.#deps.onLost !== undefined) {
          this.#deps.onLost();
          await sleep(dice.between(5, 50));
          continue;
        }
        // The server may be down for a reason of its own; the driver detects that.
        report({
          invariant: "connection",
          message: `a connection broke while nobody had killed the server: ${error.message}`,
          evidence: { at: ledger.now() },
        });
        return;
      }
      await sleep(dice.between(0, 5));
    }
  }

  async #thread(): Promise<string> {
    const { ledger, dice, threads } = this.#deps;
    const known = [...ledger.threads.keys()];
    // Creates new threads all the time: the youngest are the likeliest to be lost.
    if (known.length < threads || dice.chance(0.02)) {
      const answer = await this.#requests.json("POST", "/threads", {});
      const thread = (answer.json as { thread_id?: string }).thread_id;
      if (answer.status !== 200 || thread === undefined) throw new ConnectionLost("no thread");
      ledger.threads.set(thread, { acknowledged: ledger.now(), graph: dice.pick(this.#deps.graphs) });
      return thread;
    }
    // Prefers recent threads, so that each history stays short enough to be checked.
    return dice.pick(known.slice(-threads));
  }

  async #act(): Promise<void> {
    const { dice, ledger } = this.#deps;
    const act = dice.weighted(MIX);
    if (act === "stateless") return this.#stateless.act();
    if (act === "machine") return this.#machines.act();
    const thread = await this.#thread();
    const input = { kind: "work", pace: dice.between(0, 25) };
    switch (act) {
      case "wait":
        return this.#wait(thread, "wait", { input });
      case "stream":
        return this.#stream(thread, "stream", { input });
      case "background": {
        const entry = await this.#requests.create(this.#order(thread, "background", { input }));
        if (entry === undefined) return;
        return dice.chance(0.5) ? this.#requests.mirror(entry) : this.#join(entry);
      }
      case "enqueue": {
        const body = { input, multitask_strategy: "enqueue" };
        for (let i = dice.between(2, 4); i > 0; i--) {
          await this.#requests.create(this.#order(thread, "enqueue", body));
        }
        return this.#stream(thread, "enqueue", body);
      }
      case "interrupt":
        return this.#disturbing(ledger.disturb(thread, "interrupt"), () =>
          this.#wait(thread, "interrupt", { input, multitask_strategy: "interrupt" }),
        );
      case "rollback":
        return this.#disturbing(ledger.disturb(thread, "rollback"), () =>
          this.#stream(thread, "rollback", { input, multitask_strategy: "rollback" }),
        );
      case "cancel":
        return this.#cancel(thread, input);
      case "leave":
        return this.#leave(thread, input);
      case "ask":
        return this.#ask(thread);
      case "read":
        return this.#read(thread);
    }
  }

  async #disturbing(disturbance: Disturbance, act: () => Promise<void>): Promise<void> {
    await act();
    disturbance.until = this.#deps.ledger.now();
  }

  async #cancel(thread: string, input: unknown): Promise<void> {
    const { dice, ledger } = this.#deps;
    const body = { input, multitask_strategy: "enqueue" };
    const entry = await this.#requests.create(this.#order(thread, "cancelled", body));
    if (entry === undefined) return;
    await sleep(dice.between(0, 30));
    const action = dice.pick(["interrupt", "rollback"] as const);
    const wait = dice.pick([0, 1]);
    const disturbance = ledger.disturb(thread, action, entry.run);
    const path = `/threads/${thread}/runs/${entry.run}/cancel?wait=${wait}&action=${action}`;
    await this.#requests.json("POST", path);
    disturbance.until = ledger.now();
  }

  /** Disconnects before the end, with or without the run. */
  async #leave(thread: string, input: unknown): Promise<void> {
    const { dice } = this.#deps;
    const bound = dice.chance(0.5);
    const body = { input, multitask_strategy: "enqueue", on_disconnect: bound ? "cancel" : "continue" };
    const order = { ...this.#order(thread, "leave", body, bound), bound, leaves: dice.between(1, 80) };
    await (dice.chance(0.5) ? this.#requests.wait(order) : this.#requests.stream(order));
  }

  async #ask(thread: string): Promise<void> {
    const { dice } = this.#deps;
    await this.#wait(thread, "ask", { input: { kind: "ask", pace: 1 } });
    const answer = await this.#requests.json("GET", `/threads/${thread}`);
    if ((answer.json as { status?: string }).status !== "interrupted") return;
    const resume = { command: { resume: `answer-${dice.between(0, 1e6)}` } };
    if (dice.chance(0.5)) await this.#wait(thread, "resume", resume);
    else await this.#stream(thread, "resume", resume);
  }

  async #read(thread: string): Promise<void> {
    const what = this.#deps.dice.pick(["state", "history?limit=5", "runs?limit=20"]);
    await this.#requests.json("GET", `/threads/${thread}/${what}`);
  }

  #order(thread: string, what: string, body: object, bound = false): RequestedRun {
    const { ledger } = this.#deps;
    const note: RequestedRun["note"] = (run, sent, hooked) =>
      ledger.acknowledge(thread, run, what, sent, { hooked, bound });
    return { at: `/threads/${thread}`, what, body, note };
  }

  async #wait(thread: string, what: string, body: object): Promise<void> {
    const answer = await this.#requests.wait(this.#order(thread, what, body));
    if (answer !== undefined) this.#settled(answer.entry, answer.json);
  }

  async #stream(thread: string, what: string, body: object): Promise<void> {
    await this.#requests.stream(this.#order(thread, what, { on_disconnect: "continue", ...body }));
  }

  async #join(entry: RunEntry): Promise<void> {
    const answer = await this.#requests.json("GET", `/threads/${entry.thread}/runs/${entry.run}/join`);
    if (answer.status === 200) this.#settled(entry, answer.json);
  }

  /** Records a complete answer of `wait` or `join`: the run has ended, and its work is in the state. */
  #settled(entry: RunEntry, json: unknown): void {
    entry.ended ??= this.#deps.ledger.now();
    const log = (json as { log?: unknown } | undefined)?.log;
    if (!Array.isArray(log)) return;
    for (const line of log) {
      if (typeof line === "string" && line.startsWith(entry.run)) entry.shown.add(line);
    }
  }
}
