import { someKwargs, someRun } from "../fixtures/runs.ts";
import type { ChannelChange, NewCheckpoint, PendingTaskWrites } from "../../src/model/checkpoint.ts";
import { toPlainError, type PlainError } from "../../src/model/errors.ts";
import type { Fact } from "../../src/model/run-event.ts";
import { eventCountOf } from "../../src/model/run-event.ts";
import { uuid6 } from "../../src/model/ids.ts";
import { pendingInterrupts } from "./pending.ts";
import type { InterruptsByTask } from "../../src/model/interrupt.ts";
import type { JsonObject } from "../../src/model/json.ts";
import type { RunKwargs, RunRecord } from "../../src/model/run.ts";
import type { Execution, Plan, CheckpointWithState, EngineStep } from "../../src/ports/engine.ts";
import type { EngineHost } from "../../src/ports/engine-host.ts";
import type { StateWrite, StateUpdateResult } from "../../src/ports/state-update.ts";
import type { Logger } from "../../src/ports/logger.ts";
import { GraphRegistry } from "../../src/graph/graph-registry.ts";
import { systemScheduler } from "../../src/platform/scheduler.ts";
import { createNativeEngine } from "../../src/engine/native-engine.ts";
import { createInThreadNodeExecutor } from "../../src/engine/in-thread-node-executor.ts";

const quiet: Logger = { debug() {}, info() {}, warn() {}, error() {} };
const random = { bytes: (count: number) => new Uint8Array(count).fill(7), float: () => 0.5 };

export const runId = (n: number) => `00000000-0000-7000-8000-${String(n).padStart(12, "0")}`;

export interface Ended {
  readonly plan: Plan;
  readonly error: PlainError | null;
  readonly values: JsonObject;
  readonly facts: readonly Fact[];
  /** Facts in short: `task:a`, `result:a`, `checkpoint:0`, ... */
  readonly trace: readonly string[];
  readonly checkpoints: readonly NewCheckpoint[];
}

/** Graphs of our own ask nothing of it. */
const noStage = new Proxy({} as EngineHost, {
  get: (_, name) => {
    throw new TypeError(`A native graph asked for ${String(name)}`);
  },
});

/** A thread without actors or storage: the loop that a run's actor drives, its records kept in memory as they would be stored. */
export class Thread {
  readonly registry = new GraphRegistry();
  readonly engine = createNativeEngine(this.registry, systemScheduler);
  /** Milliseconds, moved by the test. */
  time = 0;
  readonly clock = { now: () => this.time, mono: () => this.time };
  readonly host = createInThreadNodeExecutor(this.registry, {
    logger: quiet,
    random,
    clock: this.clock,
    scheduler: systemScheduler,
  });
  readonly checkpoints: NewCheckpoint[] = [];
  readonly writes = new Map<string, PendingTaskWrites>();
  /** The checkpoint that the next run starts from. */
  head: NewCheckpoint | null = null;
  /** What the engine said the state was. */
  values: JsonObject = {};
  #ids = 0;
  #runs = 0;

  constructor(graph: unknown) {
    this.registry.add("g", graph);
  }

  /** The state as a cold read would give it: folded from the changes of the stored checkpoints. */
  stored(head: NewCheckpoint | null = this.head): JsonObject {
    if (head === null) return {};
    const parent = this.checkpoints.find((one) => one.id === head.parent) ?? null;
    const values: Record<string, unknown> = { ...this.stored(parent) };
    for (const [key, change] of Object.entries(head.changes)) applyChange(values, key, change);
    return values;
  }

  get interrupts(): InterruptsByTask {
    return pendingInterrupts(this.writesAt(this.head));
  }

  writesAt(head: NewCheckpoint | null): readonly PendingTaskWrites[] {
    return [...this.writes.values()].filter((one) => one.checkpoint === head?.id);
  }

  record(kwargs: Partial<RunKwargs>, attempt = 1, id = runId(++this.#runs)): RunRecord {
    const configurable = { run_id: id, graph_id: "g", user_id: "", checkpoint_id: null };
    return someRun({
      run_id: id,
      thread_id: "11111111-0000-7000-8000-000000000000",
      assistant_id: "22222222-0000-5000-8000-000000000000",
      graph_id: "g",
      kwargs: someKwargs({
        ...kwargs,
        config: {
          metadata: { created_by: "system" },
          ...kwargs.config,
          configurable: { ...configurable, ...kwargs.config?.configurable },
        },
      }),
      order: 0,
      attempt,
      base_checkpoint: this.head?.id ?? null,
    });
  }

  open(run: RunRecord, position: Partial<CheckpointWithState> = {}): Execution {
    const at = { head: this.head, values: this.stored(), writes: this.writesAt(this.head), ...position };
    return this.engine.open(run, structuredClone(at), this.#source, noStage);
  }

  keep(step: Pick<EngineStep, "checkpoints" | "writes">): void {
    for (const made of step.checkpoints) {
      this.checkpoints.push(structuredClone(made));
      this.head = made;
    }
    for (const writes of step.writes)
      this.writes.set(`${writes.checkpoint} ${writes.task}`, structuredClone(writes));
  }

  /** A superstep that no run makes; of the latest checkpoint unless another is given. */
  async update(writes: readonly Partial<StateWrite>[], head?: NewCheckpoint): Promise<StateUpdateResult> {
    const at = head ?? this.head;
    const position = { head: at, values: this.stored(at), writes: this.writesAt(at) };
    const updated = await this.engine.update(
      {
        graph: "g",
        ns: "",
        writes: writes.map((write) => ({ values: null, as_node: null, at: "", ...write })),
        latest: head === undefined,
        metadata: { graph_id: "g" },
      },
      structuredClone(position),
      this.#source,
    );
    this.keep({ checkpoints: [updated.checkpoint], writes: [] });
    this.values = updated.values;
    return updated;
  }

  readonly #source = {
    tenant: "_",
    now: () => 1_000 + this.#ids,
    checkpointId: (step: number) => uuid6(1_000, ++this.#ids, step, random.bytes(6)),
  };

  /** Runs to the end of the run; `stopAfter` tasks it is cut off as by a crash, with what is stored kept. */
  async run(
    kwargs: Partial<RunKwargs>,
    options: { readonly record?: RunRecord; readonly stopAfter?: number; readonly reverse?: boolean } = {},
  ): Promise<Ended> {
    const record = options.record ?? this.record(kwargs);
    const facts: Fact[] = [];
    const made: NewCheckpoint[] = [];
    let next = 0;
    const emit = (fact: Fact) => {
      facts.push(structuredClone(fact));
      const id = next;
      next += eventCountOf(fact);
      return id;
    };
    let error: PlainError | null = null;
    let plan: Plan = { kind: "done" };
    let settledTasks = 0;
    let signal = new AbortController().signal;
    try {
      const execution = this.open(record);
      let step = await execution.begin();
      for (;;) {
        this.keep(step);
        made.push(...step.checkpoints);
        for (const { fact } of step.emissions) emit(fact);
        this.values = step.values;
        plan = step.plan;
        if (plan.kind === "failed") error = plan.error;
        if (plan.kind !== "tasks") break;
        const ran = plan.tasks.map(async ({ id }) => {
          const call = execution.call(id);
          let { steps } = call;
          const outcome = await this.host.run(structuredClone(call), {
            emit,
            signal,
            end: () => undefined,
            store: () => Promise.reject(new Error("no store here")),
            record: async (key, value) => {
              steps = { ...steps, [key]: value };
            },
          });
          return { id, outcome, steps };
        });
        const order = options.reverse ? [...ran].reverse() : ran;
        for (const one of order) {
          const { id, outcome, steps } = await one;
          const settled = await execution.settle(id, outcome);
          this.keep({
            checkpoints: [],
            writes: [{ ...settled.writes, steps: { ...settled.writes.steps, ...steps } }],
          });
          for (const { fact } of settled.emissions) emit(fact);
          if (settled.kind === "failed") error ??= settled.error ?? toPlainError("failed");
          if (++settledTasks === options.stopAfter) throw new Error("cut off");
        }
        if (error !== null) break;
        step = await execution.apply();
      }
    } catch (thrown) {
      error ??= toPlainError(thrown);
    }
    return { plan, error, values: this.values, facts, trace: facts.map(short), checkpoints: made };
  }
}

function applyChange(values: Record<string, unknown>, key: string, change: ChannelChange): void {
  if (change.kind === "set") values[key] = change.value;
  else if (change.kind === "clear") delete values[key];
  else values[key] = [...((values[key] ?? []) as unknown[]).slice(0, change.keep), ...change.items];
}

function short(fact: Fact): string {
  switch (fact.t) {
    case "checkpoint":
      return `checkpoint:${fact.step}${fact.input ? "(input)" : ""}`;
    case "task":
    case "result":
      return `${fact.t}:${fact.name}`;
    case "interrupt":
      return `interrupt:${fact.interrupts.length}`;
    case "token":
      return `token:${fact.text}`;
    case "complete":
      return `complete:${String(fact.message["type"])}${fact.streamed ? "(streamed)" : ""}`;
    default:
      return fact.t;
  }
}
