import type {
  ChannelChange,
  CheckpointHead,
  CheckpointSource,
  NewCheckpoint,
  PlannedTask,
  TaskWrites,
} from "../model/checkpoint.ts";
import type { PlainError } from "../model/errors.ts";
import type { Fact } from "../model/event.ts";
import type { Interrupt } from "../model/interrupt.ts";
import { isObject, type JsonObject } from "../model/json.ts";
import type { Breakpoints, RunRecord } from "../model/run.ts";
import type { Emission, Position, Source, Step } from "../ports/engine.ts";
import type { Definition } from "../graph/definition.ts";
import {
  applyUpdates,
  breaksAt,
  clearBrief,
  initialValues,
  joinChanges,
  planNext,
  readJoins,
  type Applied,
  type Joins,
  type Left,
  type Move,
} from "../graph/superstep.ts";

/** A task's leavings that are no task's: the update and the targets that came with an answer. */
export const NO_TASK = "00000000-0000-0000-0000-000000000000";

const RECURSION_LIMIT = 25;

/** Heddle's engine serves root graphs; their namespace. */
export const ROOT = "";

/** What is to be planned, and what breakpoints may stop it. */
interface Planning {
  /** What is to run now. */
  readonly tasks: readonly PlannedTask[];
  /** All tasks of the step, when some of them are done or wait. */
  readonly all?: readonly PlannedTask[];
  readonly emissions: Emission[];
  readonly checkpoints?: readonly NewCheckpoint[];
  readonly writes?: readonly TaskWrites[];
  /** The nodes that have just run; undefined when breakpoints do not count: the run has just been told to go on. */
  readonly after?: readonly string[];
}

/** One run's place in its graph: the latest checkpoint, the state there, and what the tasks of its step have left. */
export class Frame {
  readonly definition: Definition;
  readonly run: RunRecord;
  readonly source: Source;
  readonly stop: number;
  head: CheckpointHead | null;
  values: JsonObject;
  /** What is never stored: it lives as long as the attempt. */
  untracked: JsonObject = {};
  /** The step's tasks, by id. */
  tasks = new Map<string, PlannedTask>();
  left = new Map<string, TaskWrites>();
  /** How often this attempt has called each task of the step. */
  readonly tries = new Map<string, number>();
  /** What tasks wrote to keys that are never stored, by task. */
  readonly loose = new Map<string, JsonObject>();
  /** The state with the one task's update in it, when an edge has already asked for it. */
  fresh: { readonly task: string; readonly applied: Applied } | undefined;
  /** Made since the checkpoint, and to be stored with the next one. */
  #pending: Applied["changes"] = {};
  #joins: Joins;
  readonly #metadata: JsonObject;

  constructor(definition: Definition, run: RunRecord, position: Position, source: Source) {
    this.definition = definition;
    this.run = run;
    this.source = source;
    this.head = position.head;
    this.left = new Map(position.writes.map((writes) => [writes.task, writes]));
    const initial = initialValues(definition, position.values);
    this.values = initial?.values ?? position.values;
    this.#pending = initial?.changes ?? {};
    const engine = position.head?.engine ?? {};
    this.#joins = readJoins(engine["joins"]);
    this.#metadata = metadataOf(run);
    const limit = run.kwargs.config["recursion_limit"];
    const steps = typeof limit === "number" && limit >= 1 ? limit : RECURSION_LIMIT;
    const stop = engine["stop"];
    // The input takes a step, and the start another; -2 stands for a thread without any.
    this.stop = this.continued && typeof stop === "number" ? stop : (position.head?.step ?? -2) + steps + 2;
  }

  /** Has an earlier attempt of this run got beyond its beginning? */
  get continued(): boolean {
    return this.run.attempt > 1 && this.head?.run_id === this.run.run_id;
  }

  /** Changes the state without a checkpoint: the next one takes it along. */
  patch(update: JsonObject | null): void {
    const applied = applyUpdates(this.definition, this.values, [update]);
    this.values = applied.values;
    this.#pending = joinChanges(this.#pending, applied.changes);
  }

  /** The step after the latest checkpoint. */
  get step(): number {
    return (this.head?.step ?? -2) + 1;
  }

  /** What a node reads. */
  get state(): JsonObject {
    return this.withLoose(this.values, this.untracked);
  }

  withLoose(values: JsonObject, untracked: JsonObject): JsonObject {
    for (const _ in untracked) return Object.freeze({ ...values, ...untracked });
    return values;
  }

  /** Makes a checkpoint of the state as it is; `plan` says what runs from there. */
  checkpoint(
    source: CheckpointSource,
    writes: JsonObject | null,
    plan: (id: string, step: number) => readonly PlannedTask[],
    changes: { readonly [channel: string]: ChannelChange } = {},
  ): NewCheckpoint {
    const { step } = this;
    const id = this.source.checkpointId(step);
    const next = plan(id, step + 1);
    let engine: JsonObject = { stop: this.stop };
    for (const _ in this.#joins) engine = { stop: this.stop, joins: this.#joins };
    const head: CheckpointHead = {
      id,
      parent: this.head?.id ?? null,
      ns: ROOT,
      step,
      source,
      created_at: this.source.now(),
      run_id: this.run.run_id,
      metadata: this.#metadata,
      writes,
      next,
      engine,
      graph: this.definition.hash,
    };
    this.head = head;
    this.left = new Map();
    this.tries.clear();
    this.fresh = undefined;
    const made = { ...head, changes: joinChanges(this.#pending, changes) };
    this.#pending = {};
    return made;
  }

  /**
   * Applies what the step's tasks left, in this order, and makes the checkpoint.
   * @throws ServiceError `state.concurrent_update`, `state.invalid`, or what a reducer throws
   */
  commit(lefts: readonly Left[], writes: JsonObject | null): NewCheckpoint {
    const only = lefts.length === 1 ? lefts[0] : undefined;
    const applied =
      this.fresh !== undefined && this.fresh.task === only?.task.id
        ? this.fresh.applied
        : applyUpdates(
            this.definition,
            this.values,
            lefts.map((left) => left.update),
          );
    const { values, changes } = clearBrief(this.definition, this.values, applied);
    if (this.loose.size > 0) {
      const loose = lefts.map((left) => this.loose.get(left.task.id) ?? null);
      this.untracked = applyUpdates(this.definition, this.untracked, loose).values;
      this.loose.clear();
    }
    const joins = this.#joins;
    const plan = (checkpoint: string, step: number) => {
      const planned = planNext(this.definition, { ns: ROOT, checkpoint, step }, lefts, joins);
      this.#joins = planned.joins;
      return planned.next;
    };
    this.values = values;
    return this.checkpoint("loop", writes, plan, changes);
  }

  /** The fact of the latest checkpoint. */
  announce(input: boolean): Emission {
    const head = this.head as CheckpointHead;
    const { id, step } = head;
    return { fact: { t: "checkpoint", id, ns: ROOT, step, input }, values: this.values, head };
  }

  /** Goes on from the latest checkpoint: with tasks, or not. */
  plan({ tasks, all, emissions, checkpoints = [], writes = [], after }: Planning): Step {
    const { values, run } = this;
    const base = { checkpoints, writes, emissions, values };
    this.tasks = new Map((all ?? tasks).map((task) => [task.id, task]));
    if (tasks.length === 0) return { ...base, plan: { kind: "done" } };
    const { interrupt_before, interrupt_after } = run.kwargs;
    if (after !== undefined && breaksAt(interrupt_after, after)) return this.#breakpoint(base);
    if (this.step > this.stop) {
      return { ...base, plan: { kind: "failed", error: this.#recursion() } };
    }
    if (after !== undefined && this.#breaksBefore(interrupt_before, tasks)) return this.#breakpoint(base);
    const checkpoint = (this.head as CheckpointHead).id;
    const at = this.source.now();
    for (const { id, name, triggers, input } of tasks) {
      emissions.push({
        fact: { t: "task", id, name, ns: ROOT, checkpoint, triggers, at, ...(input && { input }) },
      });
    }
    return { ...base, plan: { kind: "tasks", tasks } };
  }

  #breaksBefore(points: Breakpoints | null, tasks: readonly PlannedTask[]): boolean {
    if (points === null) return false;
    return breaksAt(
      points,
      tasks.map((task) => task.name),
    );
  }

  #breakpoint(base: Omit<Step, "plan"> & { readonly emissions: Emission[] }): Step {
    base.emissions.push(this.pauseFact([]));
    return { ...base, plan: { kind: "paused", interrupts: {} } };
  }

  pauseFact(interrupts: readonly Interrupt[]): Emission {
    const checkpoint = (this.head as CheckpointHead).id;
    return { fact: { t: "interrupt", ns: ROOT, checkpoint, interrupts }, values: this.values };
  }

  #recursion(): PlainError {
    return {
      error: "GraphRecursionError",
      message:
        `The run has not come to an end at step ${this.stop}, its limit; ` +
        `raise recursion_limit in its config, or look for a loop in the edges`,
    };
  }

  /** The fact of a task's end. */
  resultFact(
    { id, name }: PlannedTask,
    outcome: Pick<Extract<Fact, { t: "result" }>, "update" | "error" | "interrupts">,
  ): Fact {
    const checkpoint = (this.head as CheckpointHead).id;
    return { t: "result", id, name, ns: ROOT, checkpoint, at: this.source.now(), ...outcome };
  }

  failed(error: PlainError): Step {
    const { values } = this;
    return { checkpoints: [], writes: [], emissions: [], values, plan: { kind: "failed", error } };
  }
}

/** What a finished task left, read back from its stored form. */
export function leftOf(task: PlannedTask, { result }: TaskWrites): Left {
  const update = isObject(result?.value) ? result.value : null;
  return { task, update, goto: (result?.goto ?? []) as readonly Move[] };
}

/** Settings of one call, of no use to whoever reads the checkpoint later. */
const HIDDEN: ReadonlySet<string> = new Set(["checkpoint_id", "checkpoint_ns", "checkpoint_map"]);

/** What the checkpoints of a run say about it. */
function metadataOf(run: RunRecord): JsonObject {
  const { configurable, metadata } = run.kwargs.config;
  const facts: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(configurable)) {
    const scalar = typeof value === "string" || typeof value === "number" || typeof value === "boolean";
    if (scalar && !key.startsWith("__") && !HIDDEN.has(key)) facts[key] = value;
  }
  const { run_id, thread_id, graph_id, assistant_id } = run;
  return Object.freeze({ ...facts, ...metadata, run_id, thread_id, graph_id, assistant_id });
}
