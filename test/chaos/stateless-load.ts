import { setTimeout as sleep } from "node:timers/promises";
import { pairedId } from "../../src/model/ids.ts";
import { multitaskStrategies } from "../../src/model/run.ts";
import type { RunRequests, RequestedRun } from "./run-requests.ts";
import type { StatelessRunEntry, Ledger, RunEntry, StreamEntry, Violation } from "./ledger.ts";
import type { SeededRandom } from "./random.ts";

/** The relative frequency of each action of clients that have no thread. */
const MIX = { background: 8, wait: 7, stream: 10, leave: 7, cancel: 5, keep: 3 } as const;

/** The log entries of every run of the kind `work`. */
const NODES = ["plan", "left", "right", "join"];

interface StatelessLoadDeps {
  readonly requests: RunRequests;
  readonly ledger: Ledger;
  readonly dice: SeededRandom;
  readonly report: (violation: Violation) => void;
}

/** Load of stateless runs: their threads are hidden while they are active, and deleted when they end. */
export class StatelessLoad {
  readonly #deps: StatelessLoadDeps;

  constructor(deps: StatelessLoadDeps) {
    this.#deps = deps;
  }

  async act(): Promise<void> {
    const { requests, dice } = this.#deps;
    switch (dice.weighted(MIX)) {
      case "background":
        return this.#background();
      case "wait": {
        const answer = await requests.wait(this.#order("stateless wait", dice.chance(0.5)));
        if (answer !== undefined) this.#answered(answer.entry, answer.json);
        return;
      }
      case "stream": {
        const read = await requests.stream(this.#order("stateless stream", dice.chance(0.5)));
        if (read !== undefined) this.#read(read.entry, read.stream);
        return;
      }
      case "leave": {
        const order = { ...this.#order("stateless leave", dice.chance(0.5)), leaves: dice.between(1, 80) };
        await (dice.chance(0.5) ? requests.wait(order) : requests.stream(order));
        return;
      }
      case "cancel":
        return this.#cancel();
      case "keep":
        return this.#keep();
    }
  }

  /**
   * `bound`: true if the client stays and the run ends when the client disconnects; undefined if the run needs no
   * client.
   */
  #order(what: string, bound?: boolean): RequestedRun {
    const { dice, ledger } = this.#deps;
    const last = dice.chance(0.15) ? "ask" : "join";
    const how = bound === true ? dice.pick(["cancel", undefined]) : "continue";
    return {
      at: "",
      what,
      body: {
        input: { kind: last === "ask" ? "ask" : "work", pace: dice.between(0, 25) },
        multitask_strategy: dice.pick([undefined, ...multitaskStrategies]),
        ...(bound === undefined ? {} : { on_disconnect: how }),
      },
      bound: bound === true,
      note: (run, sent, hooked) =>
        ledger.acknowledgeStateless(run, what, sent, hooked, { bound: bound === true, last }),
    };
  }

  async #background(): Promise<void> {
    const { requests, dice } = this.#deps;
    const entry = await requests.create(this.#order("stateless background"));
    if (entry === undefined || dice.chance(0.5)) return;
    const { status, json } = await requests.json("GET", `/runs/${entry.run}/join`);
    if (status !== 200) return;
    entry.ended ??= this.#deps.ledger.now();
    this.#answered(entry, json);
  }

  async #cancel(): Promise<void> {
    const { requests, dice, ledger } = this.#deps;
    const entry = await requests.create(this.#order("stateless cancelled"));
    if (entry === undefined) return;
    await sleep(dice.between(0, 30));
    const action = dice.pick(["interrupt", "rollback"] as const);
    const disturbance = ledger.disturb(entry.thread, action, entry.run);
    const path = `/threads/${entry.thread}/runs/${entry.run}/cancel`;
    await requests.json("POST", `${path}?wait=${dice.pick([0, 1])}&action=${action}`);
    disturbance.until = ledger.now();
  }

  /** Creates a run whose thread is kept: after its end the thread is an ordinary one. */
  async #keep(): Promise<void> {
    const { requests, dice, ledger } = this.#deps;
    const note: RequestedRun["note"] = (run, sent, hooked) => {
      const thread = pairedId(run);
      ledger.threads.set(thread, { acknowledged: ledger.now() });
      return ledger.acknowledge(thread, run, "kept", sent, { hooked });
    };
    const input = { kind: "work", pace: dice.between(0, 25) };
    const body = { input, on_completion: "keep", on_disconnect: "continue" };
    const order = { at: "", what: "kept", body, note };
    if (dice.chance(0.5)) await requests.create(order);
    else await requests.stream(order);
  }

  /** Records a complete answer: it contains all of the run's work, unless the run was stopped or given up. */
  #answered(entry: RunEntry, json: unknown): void {
    const { log, __error__, __interrupt__ } = json as Record<string, unknown>;
    const { last } = entry as StatelessRunEntry;
    const lines = Array.isArray(log) ? log : [];
    const whole =
      last === "ask"
        ? __interrupt__ !== undefined
        : NODES.every((node) => lines.includes(`${entry.run}:${node}`));
    if (!whole) this.#partly(entry, { answer: json, failed: __error__ !== undefined });
  }

  #read(entry: RunEntry, { modes, frames }: StreamEntry): void {
    if (!modes.includes("updates") || (entry as StatelessRunEntry).last === "ask") return;
    const line = `${entry.run}:join`;
    const whole = frames.some(({ event, raw }) => event === "updates" && raw.includes(line));
    if (!whole)
      this.#partly(
        entry,
        frames.slice(-3).map(({ raw }) => raw),
      );
  }

  #partly(entry: RunEntry, evidence: unknown): void {
    const { ledger, report } = this.#deps;
    if (ledger.mayBeCut(entry) || ledger.mayFail(entry)) return;
    report({
      invariant: "I1",
      message: `run ${entry.run} (${entry.what}) was shown without its work`,
      evidence,
    });
  }
}
