import { isTerminal } from "../../src/model/run.ts";
import type { ThreadKey } from "../../src/model/thread.ts";
import type { NodeCall } from "../../src/ports/engine.ts";
import type { Host } from "../../src/ports/host.ts";
import type { Journal } from "../../src/ports/journal.ts";
import type { Temporary } from "../../src/model/thread.ts";

/** A run that was asked for without a thread, and the thread that was made for it. */
export interface AloneRun {
  readonly key: ThreadKey;
  readonly temporary: Temporary;
  /** The life of the server in which it was asked for. */
  readonly life: number;
  acknowledged: boolean;
}

/** What the simulation has seen happen, over all crashes: it outlives every server. */
export class Observed {
  readonly violations: string[] = [];
  readonly threads = new Set<string>();
  /** Runs whose creation was acknowledged, by id. */
  readonly admitted = new Map<string, ThreadKey>();
  /** Changes of a state by no run that were acknowledged. */
  readonly updates: { readonly thread: string; readonly checkpoint: string }[] = [];
  readonly alone = new Map<string, AloneRun>();
  /** Runs that have a webhook. */
  readonly hooked = new Set<string>();
  /** Runs that store nothing before their end. */
  readonly atExit = new Set<string>();
  /** Runs whose end was to be stored, whether that was heard of or not. */
  readonly closed = new Set<string>();
  /** Runs that may be gone: a rollback was asked for that could reach them. */
  readonly rollable = new Set<string>();
  /** Threads on which a rollback was ever asked for: a run admitted meanwhile may be gone too. */
  readonly rolled = new Set<string>();
  /** Runs whose end is stored. */
  readonly ended = new Set<string>();
  /** Checkpoints from which a durable append has gone on, and the run that did: their tasks are done for good. */
  readonly passed = new Map<string, string>();
  /** task id -> the checkpoint that it runs from. */
  readonly taskOf = new Map<string, string>();
  /** Runs that are being taken back: whether that is stored has not been heard. */
  readonly #forgetting = new Set<string>();
  /** thread -> the runs whose nodes have been executed there and whose end is not stored. */
  readonly executing = new Map<string, Set<string>>();
  executions = 0;
  life = 0;
  appends = 0;

  violation(invariant: string, what: string): void {
    this.violations.push(`${invariant}: ${what}`);
  }

  admit(key: ThreadKey, run: string): void {
    this.admitted.set(run, key);
  }

  /** A run that may take back the others is asked for on a thread. */
  rollback(thread: string): void {
    for (const [run, key] of this.admitted) if (key.thread === thread) this.rollable.add(run);
    this.rolled.add(thread);
  }

  /** No node body outlives its process. What was being taken back may be, though nobody heard of it. */
  crash(): void {
    this.executing.clear();
    for (const run of this.#forgetting) this.#takenBack(run);
    this.#forgetting.clear();
    this.life++;
  }

  /** The journal, watched: a resolved durable append is a promise. */
  journal(journal: Journal): Journal {
    return new Proxy(journal, {
      get: (target, name) => {
        if (name === "append") {
          return (append: Parameters<Journal["append"]>[0]) => {
            for (const fact of append.events?.facts ?? []) {
              if (fact.t === "task") this.taskOf.set(fact.id, fact.checkpoint);
            }
            for (const run of append.runs ?? []) if (isTerminal(run.status)) this.closed.add(run.run_id);
            for (const run of append.forget ?? []) {
              this.closed.add(run);
              this.#forgetting.add(run);
            }
            return target.append(append).then(() => {
              this.appends++;
              for (const run of append.runs ?? []) {
                if (isTerminal(run.status)) this.#end(append.key.thread, run.run_id);
              }
              for (const run of append.forget ?? []) {
                this.#end(append.key.thread, run);
                this.#forgetting.delete(run);
                this.#takenBack(run);
              }
              if (!append.durable) return;
              for (const { parent, run_id } of append.checkpoints ?? []) {
                if (parent !== null) this.passed.set(parent, run_id ?? "");
              }
            });
          };
        }
        const member = Reflect.get(target, name) as unknown;
        return typeof member === "function" ? member.bind(target) : member;
      },
    });
  }

  /** What it had passed is open again. */
  #takenBack(run: string): void {
    for (const [checkpoint, by] of this.passed) if (by === run) this.passed.delete(checkpoint);
  }

  #end(thread: string, run: string): void {
    this.ended.add(run);
    this.executing.get(thread)?.delete(run);
  }

  /** The host, watched: I2 and I8 are about what node bodies see. */
  host(host: Host): Host {
    return {
      close: () => host.close(),
      run: (call, io) => {
        this.#execute(call);
        return host.run(call, io);
      },
    };
  }

  #execute(call: NodeCall): void {
    this.executions++;
    const alone = this.alone.get(call.run);
    if (alone?.temporary === "bound" && alone.life !== this.life) {
      this.violation("I10", `${call.node} of run ${call.run} ran after its client's server had died`);
    }
    const from = this.taskOf.get(call.task);
    if (from !== undefined && this.passed.has(from)) {
      this.violation("I2", `${call.node} of run ${call.run} ran again after its step was stored`);
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
