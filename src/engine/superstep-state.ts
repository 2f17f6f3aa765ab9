import type {
  ChannelChange,
  CheckpointHead,
  CheckpointSource,
  NewCheckpoint,
  PlannedTask,
  PendingTaskWrites,
} from "../model/checkpoint.ts";
import type { PlainError } from "../model/errors.ts";
import { SmallMap, smallMapBy } from "../model/small-map.ts";
import type { Fact } from "../model/run-event.ts";
import type { Interrupt } from "../model/interrupt.ts";
import { EMPTY_OBJECT, isObject, type JsonObject } from "../model/json.ts";
import { earlierRunTaskResultsOf, showsEarlierRunTaskResults } from "../model/earlier-run-task-results.ts";
import type { Breakpoints, RunRecord } from "../model/run.ts";
import type { Emission, CheckpointWithState, ExecutionServices, EngineStep } from "../ports/engine.ts";
import { START } from "../graph/definition-checks.ts";
import type { ChangedChildMachine, GraphDefinition } from "../graph/definition.ts";
import {
  applyUpdates,
  clearEphemeral,
  initialValues,
  combineChanges,
  planNext,
  waitingData,
  parseWaitingNodes,
  type StateChange,
  type FinishedTask,
  type StoredTarget,
  type WaitingNodes,
} from "../graph/superstep.ts";
import { breakpointsWithin } from "../graph/breakpoints.ts";
import { lastNodesOf, lastNodesData } from "./last-nodes.ts";
import {
  makeChildMachineCheckpoints,
  type ChildMachineStep,
  withChildTasks,
} from "./child-machine-checkpoints.ts";
import { type ChildPosition, childMachinePositionsAt } from "../model/machine-child.ts";
import { GRAPH_CHANGED_KEY, checkpointMetadata } from "./checkpoint-metadata.ts";
import { ROOT_POSITION, type GraphPosition } from "./graph-position.ts";

/** The task id of pending writes that belong to no task: the `update` and `goto` of a command that also has an answer. */
export const NULL_TASK_ID = "00000000-0000-0000-0000-000000000000";

/** The default of `recursion_limit`, in steps. */
const DEFAULT_RECURSION_LIMIT = 25;

/**
 * The end of a task. `at`: epoch milliseconds when it ended; if `at` is absent, the event that reports the end gets the
 * current time.
 */
type TaskEnd = Pick<ResultFact, "update" | "error" | "interrupts" | "cached"> &
  Partial<Pick<ResultFact, "at">>;
type ResultFact = Extract<Fact, { t: "result" }>;

const NO_CHANGES: StateChange["changes"] = Object.freeze({});

/** The state of one graph's execution: the latest checkpoint, its values, and the tasks of the step with their pending writes. */
export class SuperstepState {
  readonly definition: GraphDefinition;
  readonly run: RunRecord;
  readonly source: ExecutionServices;
  readonly graphPosition: GraphPosition;
  readonly ns: string;
  lastAllowedStep: number;
  head: CheckpointHead | null;
  /**
   * The stored values of the checkpoint from which the execution starts. Later checkpoints do not change these values.
   */
  readonly stored: JsonObject;
  values: JsonObject;
  /** The values of keys that are never stored. They last as long as the attempt of the run. */
  untracked: JsonObject = {};
  /** The step's tasks, by id. */
  tasks = new SmallMap<string, PlannedTask>();
  pendingWrites: SmallMap<string, PendingTaskWrites>;
  /** The number of attempts of each task of the step, in this attempt of the run, by task id. */
  readonly tries = new SmallMap<string, number>();
  /** Writes to keys that are never stored, by task id. */
  readonly untrackedWrites = new SmallMap<string, JsonObject>();
  /**
   * The state with the update of one task applied, if an edge of that task is a function of the state. The commit of the step reuses this
   * state if the step has no other task.
   */
  precomputed: { readonly task: string; readonly applied: StateChange } | undefined;
  /** The ids of tasks whose subgraph is paused at one of its own breakpoints. */
  readonly pausedTasks = new SmallMap<string, true>();
  /**
   * True if this run continues a step of an earlier run, and runs all unfinished tasks of the step, including
   * the paused ones.
   */
  rerunAll = false;
  /** The keys that the nodes of a subgraph have written. The subgraph returns them to its parent. Null in the root graph. */
  readonly writtenKeys: Set<string> | null;
  /** The changes since the latest checkpoint. The next checkpoint stores them. */
  #pending: StateChange["changes"] = NO_CHANGES;
  /**
   * Nodes that were triggered but cannot run yet: nodes that still wait for other nodes (option `after`), and nodes
   * with the option `defer`.
   */
  waiting: WaitingNodes;
  /** The recursion limit: the most steps that the run may take in this graph. */
  readonly limit: number;
  #metadata: JsonObject;
  /** Actors of child machines whose start was reported to clients and whose end was not, by the task id that clients see. */
  readonly #shownChildTasks = new Map<string, PlannedTask>();
  /** The latest checkpoint of each child machine. */
  #childPositions: readonly ChildPosition[];
  readonly #showsEarlierRunTaskResults: boolean;
  readonly breakpoints: { readonly before: Breakpoints | null; readonly after: Breakpoints | null };

  constructor(
    definition: GraphDefinition,
    run: RunRecord,
    position: CheckpointWithState,
    source: ExecutionServices,
    graphPosition: GraphPosition = ROOT_POSITION,
  ) {
    this.definition = definition;
    this.run = run;
    this.source = source;
    this.graphPosition = graphPosition;
    this.ns = graphPosition.ns;
    this.head = position.head;
    this.pendingWrites = smallMapBy(position.writes, ({ task }) => task);
    this.stored = position.values;
    this.values = position.values;
    this.replaceValues({ values: position.values, changes: NO_CHANGES });
    const engine = position.head?.engine ?? {};
    this.waiting = parseWaitingNodes(engine);
    this.#metadata = checkpointMetadata(run, graphPosition);
    this.#childPositions = childMachinePositionsAt(position.head);
    this.#showsEarlierRunTaskResults = showsEarlierRunTaskResults(run.kwargs);
    this.breakpoints = {
      before: breakpointsWithin(run.kwargs.interrupt_before, graphPosition.path),
      after: breakpointsWithin(run.kwargs.interrupt_after, graphPosition.path),
    };
    this.writtenKeys =
      graphPosition === ROOT_POSITION ? null : new Set(Array.isArray(engine["wrote"]) ? engine["wrote"] : []);
    const limit = run.kwargs.config["recursion_limit"];
    const usual = definition.machine?.recursionLimit ?? DEFAULT_RECURSION_LIMIT;
    this.limit = typeof limit === "number" && limit >= 1 ? limit : usual;
    const stop = engine["stop"];
    // Adds two to the limit, for the steps of the input and of `__start__`. A thread without a checkpoint counts as step -2.
    this.lastAllowedStep =
      this.isContinued && typeof stop === "number" ? stop : (position.head?.step ?? -2) + this.limit + 2;
    if (this.isContinued && position.head?.metadata[GRAPH_CHANGED_KEY] === true) this.markGraphChanged();
  }

  /**
   * Replaces the values, and adds the initial values of missing keys. The next checkpoint stores the changes.
   */
  replaceValues({ values, changes }: StateChange): void {
    const initial = initialValues(this.definition, values);
    this.values = initial?.values ?? values;
    this.#pending = initial === undefined ? changes : combineChanges(changes, initial.changes);
  }

  /** True if another graph, or another version of this graph, made the latest checkpoint. */
  get isGraphChanged(): boolean {
    return this.head !== null && this.head.graph !== this.definition.hash;
  }

  /** Marks the run's checkpoints with {@link GRAPH_CHANGED_KEY}. */
  markGraphChanged(): void {
    this.#metadata = Object.freeze({ ...this.#metadata, [GRAPH_CHANGED_KEY]: true });
  }

  /** True if an earlier attempt of this run has made the latest checkpoint. */
  get isContinued(): boolean {
    return this.run.attempt > 1 && this.head?.run_id === this.run.run_id;
  }

  /** Updates the state without making a checkpoint. The next checkpoint stores the change. */
  updateValues(update: JsonObject | null): void {
    const applied = applyUpdates(this.definition, this.values, [update]);
    this.values = applied.values;
    this.#pending = combineChanges(this.#pending, applied.changes);
  }

  /** The number of the next step: one more than the step of the latest checkpoint; -1 if there is no checkpoint. */
  get step(): number {
    return (this.head?.step ?? -2) + 1;
  }

  /** The state that nodes read: it includes the keys that are never stored. */
  get state(): JsonObject {
    return this.withUntracked(this.values, this.untracked);
  }

  withUntracked(values: JsonObject, untracked: JsonObject): JsonObject {
    for (const _ in untracked) return Object.freeze({ ...EMPTY_OBJECT, ...values, ...untracked });
    return values;
  }

  /** Makes a checkpoint of the current state. `plan` returns the tasks to run next. */
  checkpoint(
    source: CheckpointSource,
    writes: JsonObject | null,
    plan: (id: string, step: number) => readonly PlannedTask[],
    changes: { readonly [channel: string]: ChannelChange } = {},
  ): NewCheckpoint {
    const { step } = this;
    const id = this.source.checkpointId(step);
    const planned = plan(id, step + 1);
    const { machine } = this.definition;
    const next = machine === undefined ? planned : withChildTasks(planned, machine, this.#childPositions);
    const waitingNodes = waitingData(this.waiting);
    let engine: JsonObject =
      waitingNodes === null
        ? { stop: this.lastAllowedStep }
        : { stop: this.lastAllowedStep, ...waitingNodes };
    if (this.writtenKeys !== null && this.writtenKeys.size > 0)
      engine = { ...engine, wrote: [...this.writtenKeys] };
    if (source === "fork") engine = { ...engine, ...lastNodesData(lastNodesOf(this.head)) };
    if (machine !== undefined)
      Object.assign(engine, engineDataOfMachine(this.definition, this.values, this.#childPositions));
    const { ns } = this;
    // If the latest checkpoint is in another namespace, it belongs to another branch, and is not the parent. The new
    // checkpoint then stores the whole state.
    const parent = this.head === null || this.head.ns !== ns ? null : this.head.id;
    const created_at = this.source.now();
    const { run_id } = this.run;
    const metadata = this.#metadata;
    const graph = this.definition.hash;
    // This function writes out the members twice, for `head` and for its result. A spread of so many members takes as long
    // as the rest of the function.
    const head: CheckpointHead = {
      id,
      parent,
      ns,
      step,
      source,
      created_at,
      run_id,
      metadata,
      writes,
      next,
      engine,
      graph,
    };
    this.head = head;
    if (this.pendingWrites.size > 0) this.pendingWrites = new SmallMap();
    if (this.tries.size > 0) this.tries.clear();
    if (this.pausedTasks.size > 0) this.pausedTasks.clear();
    this.precomputed = undefined;
    const all = combineChanges(this.#pending, changes);
    this.#pending = NO_CHANGES;
    return {
      id,
      parent,
      ns,
      step,
      source,
      created_at,
      run_id,
      metadata,
      writes,
      next,
      engine,
      graph,
      changes: all,
    };
  }

  /**
   * Applies the writes of the step's tasks in the order of `finished`, and makes the checkpoint.
   * @throws ServiceError `state.concurrent_update`, `state.invalid`, or what a reducer throws
   */
  commit(finished: readonly FinishedTask[], writes: JsonObject | null): NewCheckpoint {
    const only = finished.length === 1 ? finished[0] : undefined;
    const applied =
      this.precomputed !== undefined && this.precomputed.task === only?.task.id
        ? this.precomputed.applied
        : applyUpdates(
            this.definition,
            this.values,
            finished.map((one) => one.update),
          );
    const { values, changes } = clearEphemeral(this.definition, this.values, applied);
    if (this.writtenKeys !== null) this.#noteWritten(finished);
    if (this.untrackedWrites.size > 0) {
      const untracked = finished.map((one) => this.untrackedWrites.get(one.task.id) ?? null);
      this.untracked = applyUpdates(this.definition, this.untracked, untracked).values;
      this.untrackedWrites.clear();
    }
    const { waiting } = this;
    const plan = (checkpoint: string, step: number) => {
      const planned = planNext(this.definition, { ns: this.ns, checkpoint, step }, finished, waiting);
      this.waiting = planned.waiting;
      return planned.next;
    };
    this.values = values;
    return this.checkpoint("loop", writes, plan, changes);
  }

  #noteWritten(finished: readonly FinishedTask[]): void {
    for (const { task, update } of finished) {
      if (task.name === START) continue;
      for (const key in update) this.writtenKeys?.add(key);
      for (const key in this.untrackedWrites.get(task.id)) this.writtenKeys?.add(key);
    }
  }

  /** Makes the checkpoints of child machines. The next checkpoint of this graph stores their ids. */
  commitChildren(changed: readonly ChangedChildMachine[]): Omit<ChildMachineStep, "positions"> {
    const { definition, head, source } = this;
    if (head === null || changed.length === 0) return { checkpoints: [], emissions: [] };
    const made = makeChildMachineCheckpoints(changed, {
      definition,
      head,
      source,
      run: this.run.run_id,
      metadata: this.#metadata,
    });
    this.#childPositions = made.positions;
    return made;
  }

  /** The event that reports the latest checkpoint. `input`: true for a checkpoint that stores an input. */
  checkpointFact(input: boolean): Emission {
    const head = this.head as CheckpointHead;
    const { id, step } = head;
    const { output } = this.definition;
    const { ns, values } = this;
    if (this.#showsEarlierRunTaskResults)
      return { fact: this.#checkpointFactWithTasks(head, input), values, head };
    if (output === null) return { fact: { t: "checkpoint", id, ns, step, input }, values, head };
    return { fact: { t: "checkpoint", id, ns, step, input, output }, values, head };
  }

  #checkpointFactWithTasks({ id, step, next }: CheckpointHead, input: boolean): Fact {
    const { output, nodes } = this.definition;
    const tasks = earlierRunTaskResultsOf(
      next,
      (task) => this.pendingWrites.get(task),
      ({ name }) => (nodes.get(name)?.graph ?? null) !== null,
    );
    const fact = { t: "checkpoint", id, ns: this.ns, step, input } as const;
    return { ...fact, ...(output !== null && { output }), ...(tasks && { tasks }) };
  }

  interruptFact(interrupts: readonly Interrupt[]): Emission {
    const checkpoint = (this.head as CheckpointHead).id;
    const { output } = this.definition;
    const fact = { t: "interrupt", ns: this.ns, checkpoint, interrupts } as const;
    return { fact: output === null ? fact : { ...fact, output }, values: this.values };
  }

  /**
   * The events that report the start of tasks. If an actor of a child machine continues from the previous step, its start
   * was already reported.
   */
  taskFacts(tasks: readonly PlannedTask[]): readonly Emission[] {
    const at = this.source.now();
    return tasks.flatMap((task) => {
      const { name, triggers, input, child } = task;
      if (child !== undefined) {
        if (this.#shownChildTasks.has(child.id)) return [];
        this.#shownChildTasks.set(child.id, task);
      }
      const { id, ns, checkpoint } = this.#shownAs(task);
      const fact = { t: "task", id, name, ns, checkpoint, triggers, at } as const;
      return [{ fact: input === undefined ? fact : { ...fact, input } }];
    });
  }

  /**
   * The events that report the end of a task. The end of an actor of a child machine is not reported if its task returned
   * nothing, because the actor may continue in the next step.
   */
  resultFacts(task: PlannedTask, outcome: TaskEnd): readonly Emission[] {
    if (task.child !== undefined) {
      const { update = null, error } = outcome;
      if (update === null && error === undefined) return [];
      this.#shownChildTasks.delete(task.child.id);
    }
    return [{ fact: this.#resultFact(task, outcome) }];
  }

  /**
   * The events that report the end of child machines' actors that are not planned again. After a step that ran actors of child machines, no
   * end is reported yet: the machine decides in the next step which actors continue.
   */
  endedChildTasks(finished: readonly FinishedTask[], next: readonly PlannedTask[]): readonly Emission[] {
    if (this.#shownChildTasks.size === 0 || finished.some(({ task }) => task.child !== undefined)) return [];
    const goesOn = new Set(next.map(({ child }) => child?.id));
    return [...this.#shownChildTasks].flatMap(([id, task]) => {
      if (goesOn.has(id)) return [];
      this.#shownChildTasks.delete(id);
      return [{ fact: this.#resultFact(task, { update: null, interrupts: [] }) }];
    });
  }

  #resultFact(task: PlannedTask, outcome: TaskEnd): Fact {
    const { id, ns, checkpoint } = this.#shownAs(task);
    return { t: "result", id, name: task.name, ns, checkpoint, at: this.source.now(), ...outcome };
  }

  /**
   * The namespace, checkpoint and task id under which clients see a task. For an actor of a child machine, these are in the
   * child's namespace.
   */
  #shownAs({ id, child }: PlannedTask): Required<PlannedTask>["child"] {
    return child ?? { id, ns: this.ns, checkpoint: (this.head as CheckpointHead).id };
  }

  /** An engine step without checkpoints, writes and events. */
  noChanges(): Omit<EngineStep, "plan"> {
    return { checkpoints: [], writes: [], emissions: [], values: this.values };
  }

  failed(error: PlainError): EngineStep {
    return { plan: { kind: "failed", error }, ...this.noChanges() };
  }
}

/**
 * The engine data of a machine: its timers, and the latest checkpoints of its children. `timersAtCheckpoint` and `childMachinePositionsAt`
 * read it.
 */
export function engineDataOfMachine(
  { machine }: GraphDefinition,
  values: JsonObject,
  positions: readonly ChildPosition[],
): JsonObject {
  if (machine === undefined) return EMPTY_OBJECT;
  const timers = machine.timers(values);
  if (timers.length === 0 && positions.length === 0) return EMPTY_OBJECT;
  const living = new Set(positions.length === 0 ? [] : machine.children(values));
  const children = positions.filter(({ start }) => living.has(start));
  return { ...(timers.length > 0 && { timers }), ...(children.length > 0 && { children }) };
}

/** Reads the writes of a finished task from their stored form. */
export function finishedTaskOf(task: PlannedTask, { result }: PendingTaskWrites): FinishedTask {
  const update = isObject(result?.value) ? result.value : null;
  return { task, update, goto: (result?.goto ?? []) as readonly StoredTarget[] };
}
