import type { GraphDrawing } from "../model/graph-drawing.ts";
import type { GraphSchemas } from "../model/graph-schemas.ts";
import type { CheckpointHead, NewCheckpoint, PlannedTask, PendingTaskWrites } from "../model/checkpoint.ts";
import type { FieldError, PlainError } from "../model/errors.ts";
import type { Fact } from "../model/run-event.ts";
import type { PendingInterrupts, Interrupt, InterruptsByTask } from "../model/interrupt.ts";
import type { JsonObject } from "../model/json.ts";
import type { AcceptedEvents, QuestionAfterMigration } from "../model/machine-mailbox.ts";
import type { RunKwargs, RunRecord } from "../model/run.ts";
import type { StatechartDefinition } from "../model/statechart.ts";
import type { Eventually } from "./eventually.ts";
import type { Emission, CheckpointWithState, EngineHost } from "./engine-host.ts";
import type { StateUpdate, StateUpdateResult } from "./state-update.ts";

export type { Emission, CheckpointWithState };

/** The plan after a step: what happens next. */
export type Plan =
  | { readonly kind: "tasks"; readonly tasks: readonly PlannedTask[] }
  /** The graph has ended. */
  | { readonly kind: "done" }
  /**
   * The graph waits for answers to `interrupts`. They are grouped by tasks of this graph: each interrupt was raised by the task itself or
   * in the task's subgraph. An empty `interrupts`: the graph waits at a breakpoint.
   */
  | { readonly kind: "paused"; readonly interrupts: InterruptsByTask }
  /**
   * A task of a subgraph has returned a command for the parent graph, so the subgraph ends. `moves`: the next nodes in
   * the parent graph, in a form that only the engine knows.
   */
  | { readonly kind: "left"; readonly moves: readonly unknown[] }
  | { readonly kind: "failed"; readonly error: PlainError };

/** One computed step: what to store, what to emit, and what happens next. */
export interface EngineStep {
  readonly checkpoints: readonly NewCheckpoint[];
  readonly writes: readonly PendingTaskWrites[];
  readonly emissions: readonly Emission[];
  readonly plan: Plan;
  /**
   * The ids of queued runs whose events the graph, an XState machine, has processed in this step. These runs end with
   * the step.
   */
  readonly taken?: readonly string[];
  /** The state of the graph after the step. */
  readonly values: JsonObject;
}

/** The outcome of one attempt of a task, as the executor of its node function reports it. */
export type TaskOutcome =
  | {
      readonly kind: "returned";
      readonly value: unknown;
      /**
       * Ids that the node function itself chose for messages that it streamed. Other streamed messages are recognised
       * by their ids, which are derived from the id of the task.
       */
      readonly streamed?: readonly string[];
      /** True: the value is the cached result of an earlier task, and the node function did not run. */
      readonly cached?: true;
    }
  | ({ readonly kind: "interrupted" } & PendingInterrupts)
  | {
      readonly kind: "failed";
      readonly error: PlainError;
      /** Epoch milliseconds at which the node function threw. Absent: no node function threw. */
      readonly at?: number;
      /** True: the executor has already logged the error. */
      readonly isLogged?: true;
      /** True: the task is not attempted again, because another attempt would also fail or is not wanted. */
      readonly final?: true;
      /** Interrupts of the task's subgraph that still wait for an answer. Present if another task of the subgraph failed. */
      readonly waiting?: readonly Interrupt[];
      /**
       * Set if the task failed because answers were refused: the interrupts that wait for an answer again. `places`: the indexes of the refused
       * answers in {@link NodeCall.resumes}.
       */
      readonly refused?: PendingInterrupts & { readonly places: readonly number[] };
    };

/** The pauses between the attempts of a task, in milliseconds. */
export interface Backoff {
  /** The pause before the second attempt, in milliseconds. */
  readonly initial: number;
  /** The factor by which each pause is longer than the previous pause. */
  readonly factor: number;
  readonly max: number;
  /** True: each pause is extended by a random amount of up to a quarter. */
  readonly jitter: boolean;
}

/** The result of a task, as the engine derives it from the task's outcome. */
export interface SettledTask {
  /** `again`: the task must run once more. */
  readonly kind: "done" | "interrupted" | "failed" | "again";
  readonly writes: PendingTaskWrites;
  readonly emissions: readonly Emission[];
  readonly error?: PlainError;
}

export type EngineKind = "native" | "langgraph";

/**
 * Everything that a node function needs to run. It MUST be structured-cloneable, because the node function may run in a
 * worker thread.
 */
export interface NodeCall {
  readonly graph: string;
  /**
   * The kind of engine that opened the run. The executor of this kind runs the node function, even if another kind of
   * engine serves the graph's name by now.
   */
  readonly engine: EngineKind;
  /** The number of the graph's definition in the graph registry of the process or worker thread. A run keeps the definition that it started with. */
  readonly edition: number;
  readonly node: string;
  readonly task: string;
  readonly ns: string;
  readonly run: string;
  readonly thread: string;
  readonly tenant: string;
  readonly assistant: string;
  readonly attempt: number;
  /**
   * The number of this attempt of the task within the attempt of the run, from 1. {@link Execution.call} increments it.
   */
  readonly try: number;
  /** True when the node is a graph: then {@link Execution.enter} is called, and the executor is not. */
  readonly subgraph: boolean;
  /** The most attempts that a task of this node may have. */
  readonly tries: number;
  /** The pauses between attempts. Present when a task of this node may have several attempts. */
  readonly backoff?: Backoff;
  /** Milliseconds that one attempt of the task may take; null: no limit. */
  readonly timeout: number | null;
  readonly step: number;
  /**
   * The input of the node: the state, or the input of the `send` that planned the task. It is shared and MUST NOT be
   * changed.
   */
  readonly input: unknown;
  readonly config: JsonObject;
  readonly context: JsonObject;
  /** The answers to the task's interrupts so far, in the form in which {@link PendingTaskWrites} stores them. */
  readonly resumes: readonly unknown[];
  /** The results of the task's `ctx.step` calls so far, by name. */
  readonly steps: JsonObject;
  /** Metadata for the events of the task's messages: langgraph_step, langgraph_node, ... */
  readonly meta: JsonObject;
  /**
   * True if the streamed output of the task has to be kept, because {@link Execution.cut} needs it when the run is
   * stopped.
   */
  readonly keepsPartial?: boolean;
}

/** A streamed part of a message (a fact `message`, `token` or `piece`), with the id of its event. */
export interface StreamedFact {
  readonly id: number;
  readonly fact: Fact;
}

/**
 * One attempt of a run of one graph, the root or a subgraph. The run's actor drives it: `begin`, then for each plan of tasks `call` and
 * `settle` for each task, then `apply`. An execution is a pure computation on the arguments of {@link Engine.open}: it MUST NOT read a
 * clock, store anything or run a node function.
 */
export interface Execution {
  /**
   * Applies the input, the command or the answers. Called once. A later attempt of the same run (`run.attempt` > 1) continues where the
   * earlier attempt stopped. If the run has already made the latest checkpoint, or stored its answers at that checkpoint, the later attempt
   * does not apply the input, the command or the answers again.
   * @throws ServiceError `resume.*`, `state.invalid`
   */
  begin(): Eventually<EngineStep>;
  /** The call for the task's next attempt. Called once for each attempt of a task. */
  call(task: string): NodeCall;
  /**
   * Reads a task's outcome. If the return value is invalid (an unknown key, a value that cannot be stored), the result
   * is `failed`, with the path of the invalid part.
   */
  settle(task: string, outcome: TaskOutcome): Eventually<SettledTask>;
  /** Applies the writes of the tasks, in task order, and plans what follows. Called when all tasks of the plan are settled. */
  apply(): Eventually<EngineStep>;
  /**
   * Asks a graph that plans its own steps (LangGraph.js) to stop, because the run was stopped before `begin` or `apply` has resolved. The
   * pending call then resolves with what was recorded so far, as soon as the graph has stopped. If the call takes longer than the grace
   * period, the caller does not wait for it and calls `end`.
   */
  abortPlanning?(): void;
  /**
   * Makes a checkpoint with the partial messages of a run that is stopped (not rolled back) in the middle of a step.
   * Returns null when no messages are kept. The new checkpoint plans the same tasks as the checkpoint before it. Called
   * for the root graph only: messages that a subgraph streams belong to the root graph's task that runs the subgraph.
   * @param streamed the streamed parts of messages so far, by task id
   */
  cut?(streamed: ReadonlyMap<string, readonly StreamedFact[]>): EngineStep | null;
  /** The subgraph that a task runs as its node. Called once for each `call` that returned `subgraph: true`. */
  enter(task: string): Subgraph;
  /**
   * Returns the outcome of this execution of a subgraph, which has ended: with the error `failure`, or without an error
   * if `failure` is null. The task that runs the subgraph is settled with this outcome, as if a node function had
   * returned it.
   */
  outcome(failure: PlainError | null): TaskOutcome;
  /**
   * Ends a graph that plans its own steps (LangGraph.js), because the run ends. Resolves with what is still to be
   * stored, or with null; does not wait for node functions. What the graph's tasks do afterwards has no effect.
   * @param stopped true when the run was stopped, false when it has ended by itself
   */
  end?(stopped: boolean): Eventually<EngineStep | null>;
  /**
   * Stops everything that still works for the graph, such as the actors of a machine or LangGraph.js, because its results
   * are no longer needed. Called at the latest when the execution ends. May be called at any time, and more than once.
   */
  abandon?(): void;
}

/**
 * A subgraph, for one attempt of a task. Its namespace is the task's namespace: the checkpoints of the subgraph, the pending writes of its
 * tasks and its events are stored under this namespace. If an earlier attempt of the task or the run, or an earlier run, has stored a
 * checkpoint there, the subgraph continues from that checkpoint: tasks that have ended there MUST NOT run again.
 */
export interface Subgraph {
  readonly ns: string;
  /**
   * The checkpoint of another branch at which the subgraph starts if its own namespace has no checkpoint yet; null: it starts at the
   * beginning.
   */
  readonly from: Pick<CheckpointHead, "ns" | "id"> | null;
  /**
   * Opens the execution of the subgraph. The caller drives it like the execution of the root graph. Before that, the caller MUST have
   * driven the task's previous attempt to its end, or have abandoned it.
   * @param position the latest checkpoint in the namespace, with its state and pending writes; if there is none, the
   *   checkpoint `from`, or an empty position
   */
  open(position: CheckpointWithState): Execution;
}

/** What an execution gets from its caller: the tenant, the time and new checkpoint ids. */
export interface ExecutionServices {
  readonly tenant: string;
  now(): number;
  /**
   * Returns a checkpoint id that sorts above all earlier checkpoint ids of the thread: `made`, if it is given and sorts above them;
   * otherwise a new id.
   */
  checkpointId(step: number, made?: string): string;
}

/** Computes runs of graphs. The run's actor knows only this port, and not the kind of graph behind it. */
export interface Engine {
  has(graph: string): boolean;
  graphs(): readonly string[];
  /** The graph as a statechart, for drawings; undefined when the graph is unknown or cannot be drawn. */
  chart?(graph: string): StatechartDefinition | undefined;
  /**
   * The graph's nodes and edges, for drawings by clients. `levels`: how many levels of subgraphs are shown in place of their nodes; Infinity:
   * all.
   * @param config the assistant's configuration, from which some graphs are built
   * @throws ServiceError `graph.not_found`
   */
  drawing(graph: string, levels: number, config: JsonObject): Eventually<GraphDrawing>;
  /** JSON Schemas of the graph's input, output, state and configuration. @throws ServiceError `graph.not_found` */
  schemas(graph: string, config: JsonObject): Eventually<GraphSchemas>;
  /**
   * JSON Schemas of the graph's subgraphs at all levels, by the path of nodes to each subgraph (`node|node`). The `graph_id` of
   * each is the id under which the server serves the subgraph itself, if it does, or else the subgraph's own name.
   * @throws ServiceError `graph.not_found`
   */
  subgraphs(graph: string, config: JsonObject): Eventually<ReadonlyMap<string, GraphSchemas>>;
  /**
   * True when a node of the graph, or of its subgraph at namespace `ns`, is itself a graph. False when there is no such node.
   */
  isSubgraph(graph: string, ns: string, node: string): boolean;
  /** True when the execution of the run itself emits the events of the stream mode `events`, as facts of type `event`. MUST NOT throw. */
  recordsEvents?(run: RunRecord): boolean;
  /** True when the graph is made from an XState machine. Such a graph's interrupts are answered by events. */
  takesEvents?(graph: string): boolean;
  /**
   * For a graph made from an XState machine: the reason to refuse an event that the machine accepts in none of its
   * states; undefined for other events. MUST NOT throw.
   */
  refusesEvent?(graph: string, event: unknown): string | undefined;
  /**
   * For a graph made from an XState machine: the events that the machine accepts while actors that it has invoked are
   * running; null if no such actor is running. MUST NOT throw.
   */
  acceptedEvents?(graph: string, values: JsonObject): AcceptedEvents | null;
  /**
   * For a graph made from an XState machine: if the next run will migrate the machine to another version, the question that this run asks
   * instead of the stored question; null if nothing will be migrated. MUST NOT throw.
   */
  migratedQuestion?(graph: string, values: JsonObject): QuestionAfterMigration | null;
  /**
   * For a graph made from an XState machine: the error with which a run would fail, before it has applied anything, that continues the
   * machine from a checkpoint. Null if the machine can continue. MUST NOT throw.
   * @param values the state at the checkpoint
   */
  continuationError?(graph: string, head: CheckpointHead, values: JsonObject): PlainError | null;
  /**
   * For a graph made from an XState machine that declares schemas: validates the run's input, or the events that answer the machine.
   * Resolves with the run's arguments, which have the results of the schemas as `parsed` if these differ from what was given. Undefined:
   * nothing has to be validated.
   * @param values reads the values from which the run will start; null if there are none
   * @throws ServiceError (the promise rejects) `validation.failed`, naming the wrong fields; `value.unstorable`; `graph.invalid`
   */
  parseRun?(run: UnadmittedRun, values: () => Eventually<JsonObject | null>): Promise<RunKwargs> | undefined;
  /** Opens the execution of an attempt of `run` that starts at `position`. @throws ServiceError `graph.not_found` */
  open(
    run: RunRecord,
    position: CheckpointWithState,
    source: ExecutionServices,
    stage: EngineHost,
  ): Execution;
  /**
   * Computes a state update as one superstep: applies the writes by the reducers of their channels, and plans the next tasks by the edges
   * of `as_node`. It stores nothing, runs no node function, and takes times and ids only from `source`. The caller may repeat the call with
   * another position, if the thread has changed meanwhile.
   *
   * Several supersteps of one request are computed one after the other, each from the result of the superstep before it, without pending
   * writes.
   * @throws ServiceError `graph.not_found`; `validation.failed` and `state.*`, naming the wrong fields: an `as_node` that is not a node, or
   *   that is missing where it is needed; values that the state refuses
   */
  update(
    update: StateUpdate,
    position: CheckpointWithState,
    source: ExecutionServices,
  ): Eventually<StateUpdateResult>;
  /** The keys of the state that a run of this graph shows as its values; null: all keys, or the graph is unknown. */
  output(graph: string): readonly string[] | null;
  /**
   * Checks a run before it is admitted, as far as that is possible. Returns the reason to refuse it, else null. MUST NOT throw.
   * @param interrupts interrupts that wait for an answer; null while the thread is busy
   * @param blank true when the thread has no state yet: the input must then have what the graph's state requires
   * @param unfinished true when the thread has next nodes: it is paused, was updated, or its last run failed
   */
  refuses(
    run: UnadmittedRun,
    interrupts: InterruptsByTask | null,
    blank?: boolean,
    unfinished?: boolean,
  ): RunRefusal | null;
}

/** The part of a run that is known before it is admitted. */
export type UnadmittedRun = Pick<RunRecord, "graph_id" | "kwargs">;

export interface RunRefusal {
  readonly code: "resume.ambiguous" | "resume.invalid" | "validation.failed";
  readonly message: string;
  /** The wrong fields of the request, if they are the reason. */
  readonly fields?: readonly FieldError[];
}
