import { isTerminal, type RunRecord } from "../../src/model/run.ts";
import type { TemporaryKind, ThreadKey } from "../../src/model/thread.ts";
import type { Clock } from "../../src/ports/clock.ts";
import type { NodeCall } from "../../src/ports/engine.ts";
import type { NodeExecutor } from "../../src/ports/node-executor.ts";
import type { Append, Journal } from "../../src/ports/journal.ts";
import { Batches } from "./batches.ts";
import { Drains } from "./drains.ts";

/** A stateless run, and the thread that was created for it. */
export interface StatelessRun {
  readonly key: ThreadKey;
  readonly temporary: TemporaryKind;
  /** The life of the server in which it was requested. */
  readonly life: number;
  acknowledged: boolean;
}

/** Milliseconds that a drain may take when no node runs any more: what is left is writes, which take a few. */
const DRAIN_SLACK = 100;

/** Everything that the simulation has observed, over all stops and crashes. It outlives every server. */
export class Observed {
  readonly violations: string[] = [];
  readonly threads = new Set<string>();
  /** Acknowledged runs, by id. */
  readonly admitted = new Map<string, ThreadKey>();
  /** Acknowledged state updates that no run made. */
  readonly updates: { readonly thread: string; readonly checkpoint: string }[] = [];
  readonly stateless = new Map<string, StatelessRun>();
  /** Runs that have a webhook. */
  readonly hooked = new Set<string>();
  /** Run id -> the ends that its webhook delivered. */
  readonly delivered = new Map<string, Set<string>>();
  /** Name of a cron's slot -> the run that was started for it. */
  readonly #slots = new Map<string, string>();
  readonly batches = new Batches();
  readonly drains = new Drains();
  /** Runs that store nothing before their end. */
  readonly atExit = new Set<string>();
  /** Runs whose end was sent to storage, acknowledged or not. */
  readonly closed = new Set<string>();
  /** The same in this life of the server. */
  readonly #closing = new Set<string>();
  /** Runs that may be gone, because a requested rollback could affect them. */
  readonly rollable = new Set<string>();
  /** Threads on which a rollback was ever requested: a run admitted meanwhile may be gone too. */
  readonly rolled = new Set<string>();
  /** Runs whose end is stored. */
  readonly ended = new Set<string>();
  /** Checkpoints from which a durable append has continued, and its run: their tasks must never run again. */
  readonly passed = new Map<string, string>();
  /** Task id -> the checkpoint from which it runs. */
  readonly taskOf = new Map<string, string>();
  /** Cancelled runs that this life has left to the next start. */
  readonly #leftCancelled = new Set<string>();
  /** Runs that are being rolled back; the result is not known yet. */
  readonly #forgetting = new Set<string>();
  /** Thread -> the runs whose nodes have executed there and whose end is not stored. */
  readonly executing = new Map<string, Set<string>>();
  /** Events of machines whose custom action has run. */
  readonly noted = new Set<string>();
  /** Results of the machines' actors, of all attempts. */
  readonly results = new Set<string>();
  executions = 0;
  life = 0;
  powerCuts = 0;
  appends = 0;

  violation(invariant: string, what: string): void {
    this.violations.push(`${invariant}: ${what}`);
  }

  admit(key: ThreadKey, run: string): void {
    this.admitted.set(run, key);
  }

  /** A run that may roll back the others is requested on a thread. */
  rollback(thread: string): void {
    for (const [run, key] of this.admitted) if (key.thread === thread) this.rollable.add(run);
    this.rolled.add(thread);
  }

  tell(run: string, status: string): void {
    const known = this.delivered.get(run);
    if (known === undefined) this.delivered.set(run, new Set([status]));
    else known.add(status);
  }

  /** The server has finished its drain, which began at `from` and may take `ms` at most. */
  drained(from: number, ms: number, now: number): void {
    const idle = now - this.drains.latest;
    if (this.drains.running().length === 0 && idle > DRAIN_SLACK)
      this.violation("I12", `the drain went on for ${idle} ms after the last node had ended`);
    if (now >= from + ms) return;
    for (const run of this.#leftCancelled)
      this.violation("I12", `the drain left run ${run} to the next start, though it was cancelled`);
    for (const { run, node, thread } of this.drains.running()) {
      if (this.closed.has(run) || this.#forgetting.has(run)) continue;
      this.violation(
        "I12",
        `the drain ended after ${now - from} of ${ms} ms, while ${node} of run ${run} of thread ${thread} ran`,
      );
    }
  }

  /** The number of cron slots that have got their run. */
  get cronRuns(): number {
    return this.#slots.size;
  }

  /**
   * The life has ended. No node body outlives its process. A rollback in progress may have been stored without an
   * acknowledgement.
   */
  over(end: "stop" | "kill" | "power"): void {
    this.drains.over(end === "stop");
    this.executing.clear();
    for (const run of this.#forgetting) this.#takenBack(run);
    this.#forgetting.clear();
    this.#closing.clear();
    this.#leftCancelled.clear();
    this.life++;
    if (end === "power") this.powerCuts++;
  }

  /** Wraps the journal: a resolved durable append is a promise. */
  journal(journal: Journal): Journal {
    const { life } = this;
    return new Proxy(journal, {
      get: (target, name) => {
        if (name === "append") {
          return (append: Append) => {
            // Requests of a dead server have no effect.
            if (this.life !== life) return target.append(append);
            this.#submitted(append);
            return target.append(append).then(() => this.#stored(append));
          };
        }
        const member = Reflect.get(target, name) as unknown;
        return typeof member === "function" ? member.bind(target) : member;
      },
    });
  }

  #submitted({ key, kind, events, runs = [], forget = [] }: Append): void {
    for (const fact of events?.facts ?? []) if (fact.t === "task") this.taskOf.set(fact.id, fact.checkpoint);
    for (const run of runs) {
      this.#known(run);
      if (kind === "left" && run.cancel !== null) this.#leftCancelled.add(run.run_id);
      if (this.ended.has(run.run_id) || this.#closing.has(run.run_id)) {
        this.violation(
          "I11",
          `"${kind}" writes run ${run.run_id} of thread ${key.thread} as ${run.status} after its end`,
        );
      }
    }
    for (const run of [
      ...runs.filter(({ status }) => isTerminal(status)).map((run) => run.run_id),
      ...forget,
    ]) {
      this.closed.add(run);
      this.#closing.add(run);
    }
    for (const run of forget) this.#forgetting.add(run);
  }

  #stored({ key, durable, thread, runs = [], forget = [], checkpoints = [], once }: Append): void {
    this.appends++;
    for (const { run_id, status, metadata } of runs) {
      if (isTerminal(status)) this.#end(key.thread, run_id);
      this.batches.stored(metadata["batch"], run_id);
    }
    for (const run of forget) {
      this.#end(key.thread, run);
      this.#forgetting.delete(run);
      this.#takenBack(run);
    }
    if (once !== undefined) this.#started(once, key, thread.temporary);
    if (!durable) return;
    for (const { parent, run_id } of checkpoints) if (parent !== null) this.passed.set(parent, run_id ?? "");
  }

  #known({ run_id, kwargs }: RunRecord): void {
    if (kwargs.durability === "exit") this.atExit.add(run_id);
    if (kwargs.webhook !== null) this.hooked.add(run_id);
  }

  /** A cron's slot has got its run: from here on that is promised. */
  #started(
    { name, run }: NonNullable<Append["once"]>,
    key: ThreadKey,
    temporary: TemporaryKind | null,
  ): void {
    const before = this.#slots.get(name);
    if (before !== undefined && before !== run) {
      this.violation("I13", `one slot of a cron has started run ${before} and run ${run}`);
    }
    this.#slots.set(name, run);
    if (temporary === null) return this.admit(key, run);
    this.stateless.set(run, { key, temporary, life: this.life, acknowledged: true });
  }

  /** The checkpoints that the run had passed are open again. */
  #takenBack(run: string): void {
    for (const [checkpoint, by] of this.passed) if (by === run) this.passed.delete(checkpoint);
  }

  #end(thread: string, run: string): void {
    this.ended.add(run);
    this.executing.get(thread)?.delete(run);
  }

  /** Wraps the executor: I2, I8, I10 and I12 are about what node bodies see. */
  executor(executor: NodeExecutor, clock: Clock): NodeExecutor {
    return {
      close: () => executor.close(),
      run: async (call, io) => {
        this.#execute(call);
        const body = this.drains.begun(call);
        const outcome = await executor.run(call, io);
        const isDone = outcome.kind === "returned" && !this.atExit.has(call.run);
        this.drains.ended(body, isDone, clock.mono());
        return outcome;
      },
    };
  }

  #execute(call: NodeCall): void {
    this.executions++;
    const stateless = this.stateless.get(call.run);
    if (stateless?.temporary === "bound" && stateless.life !== this.life) {
      this.violation("I10", `${call.node} of run ${call.run} ran after its client's server had died`);
    }
    const from = this.taskOf.get(call.task);
    if (from !== undefined && this.passed.has(from)) {
      this.violation("I2", `${call.node} of run ${call.run} ran again after its step was stored`);
    }
    if (this.drains.isDone(call)) {
      this.violation("I12", `${call.node} of run ${call.run} ran again, although it ended within the drain`);
    }
    const running = this.executing.get(call.thread) ?? new Set();
    this.executing.set(call.thread, running);
    for (const other of running) {
      if (other !== call.run && !this.ended.has(other)) {
        this.violation("I8", `runs ${other} and ${call.run} of thread ${call.thread} ran at once`);
      }
    }
    running.add(call.run);
  }
}
