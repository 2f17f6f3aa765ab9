import type { Drawing } from "../model/graph-drawing.ts";
import type { GraphSchemas } from "../model/graph-schemas.ts";
import type { CheckpointHead, NewCheckpoint, PlannedTask, TaskWrites } from "../model/checkpoint.ts";
import type { FieldError, PlainError } from "../model/errors.ts";
import type { Fact } from "../model/run-event.ts";
import type { Asking, Interrupt, Interrupts } from "../model/interrupt.ts";
import type { JsonObject } from "../model/json.ts";
import type { RunRecord } from "../model/run.ts";
import type { Statechart } from "../model/statechart.ts";
import type { Eventually } from "./eventually.ts";
import type { Emission, Position, Stage } from "./engine-host.ts";
import type { StateUpdate, Updated } from "./state-update.ts";

export type { Emission, Position };

/** What happens next. */
export type Plan =
  | { readonly kind: "tasks"; readonly tasks: readonly PlannedTask[] }
  /** The graph has come to its end. */
  | { readonly kind: "done" }
  /** It waits: for answers (by root task), or, with none, at a breakpoint. */
  | { readonly kind: "paused"; readonly interrupts: Interrupts }
  /** A subgraph's task has left it for the graph above: where to there, in the engine's own form. */
  | { readonly kind: "left"; readonly moves: readonly unknown[] }
  | { readonly kind: "failed"; readonly error: PlainError };

/** One step, computed: what to store, what to tell, what comes next. */
export interface Step {
  readonly checkpoints: readonly NewCheckpoint[];
  readonly writes: readonly TaskWrites[];
  readonly emissions: readonly Emission[];
  readonly plan: Plan;
  /** The state after the step. */
  readonly values: JsonObject;
}

/** What became of a task's attempt, as the host saw it. */
export type TaskOutcome =
  | {
      readonly kind: "returned";
      readonly value: unknown;
      /** The messages that it streamed under ids of its own choice; those with derived ids are known by them. */
      readonly streamed?: readonly string[];
      /** By an earlier task, and kept: the body did not run. */
      readonly cached?: true;
    }
  | ({ readonly kind: "interrupted" } & Asking)
  | {
      readonly kind: "failed";
      readonly error: PlainError;
      /** Another try would fail as well, or is not wanted. */
      readonly final?: true;
      /** Questions that wait all the same: of a subgraph, of which another task failed. */
      readonly waiting?: readonly Interrupt[];
      /** It failed because answers were refused: the questions that wait (again), and the answers' places in `resumes`. */
      readonly refused?: Asking & { readonly places: readonly number[] };
    };

/** Pauses between the tries of a node, in milliseconds. */
export interface Backoff {
  /** The first. */
  readonly initial: number;
  /** What each further one is multiplied by. */
  readonly factor: number;
  readonly max: number;
  /** Longer by up to a quarter, by chance. */
  readonly jitter: boolean;
}

/** What a task left, after the engine has read its outcome. `again`: the engine wants it run once more. */
export interface Settled {
  readonly kind: "done" | "interrupted" | "failed" | "again";
  readonly writes: TaskWrites;
  readonly emissions: readonly Emission[];
  readonly error?: PlainError;
}

export type EngineKind = "native" | "langgraph";

/** All that a node body needs, cloneable: it may run in another thread. */
export interface NodeCall {
  readonly graph: string;
  /** The kind of engine that opened the run: its host runs the node, whatever serves the graph's name by now. */
  readonly engine: EngineKind;
  /** Which of the definitions that the graph has had in this process: a run keeps its own. */
  readonly edition: number;
  readonly node: string;
  readonly task: string;
  readonly ns: string;
  readonly run: string;
  readonly thread: string;
  readonly tenant: string;
  readonly assistant: string;
  readonly attempt: number;
  /** Which try of this attempt it is, from 1: `call` counts them. */
  readonly try: number;
  /** The node is a graph: it is entered, not given to the host. */
  readonly subgraph: boolean;
  /** How many tries the node may have. */
  readonly tries: number;
  /** Present when it may have several. */
  readonly backoff?: Backoff;
  /** Milliseconds that one try may take, or null. */
  readonly timeout: number | null;
  readonly step: number;
  /** The state, or what a `send` brought. Shared: MUST NOT be changed. */
  readonly input: unknown;
  readonly config: JsonObject;
  readonly context: JsonObject;
  /** Answers to the task's interrupts so far, as its {@link TaskWrites} hold them. */
  readonly resumes: readonly unknown[];
  /** Its journaled steps so far. */
  readonly steps: JsonObject;
  /** What the events of its messages say: langgraph_step, langgraph_node, ... */
  readonly meta: JsonObject;
  /** What it streams is wanted by {@link Execution.cut} when the run is stopped meanwhile. */
  readonly keepsPartial?: boolean;
}

/** A `message`, `token` or `piece` fact, with the id of its event. */
export interface StreamedFact {
  readonly id: number;
  readonly fact: Fact;
}

/**
 * One attempt of one run over one graph: the root, or one that is a node, driven by the run's actor: `begin`, then for each plan of tasks `call` and
 * `settle` each one, then `apply`. It is a pure computation over what it was opened with: it MUST NOT read a clock, store
 * anything or run a node body.
 */
export interface Execution {
  /**
   * Applies the input, the command or the answers. Called once. A later attempt of the same run (`run.attempt` > 1) goes on
   * from where the earlier one got to: when the head was made by this run, or its answers are stored there, they are
   * not applied again.
   * @throws ServiceError `resume.*`, `state.invalid`
   */
  begin(): Eventually<Step>;
  /** What the task's next try is given. Called once for each try. */
  call(task: string): NodeCall;
  /** Reads a task's outcome. An invalid return (unknown key, unstorable value) makes it `failed`, naming the path. */
  settle(task: string, outcome: TaskOutcome): Eventually<Settled>;
  /** All tasks of the plan are settled: applies what they wrote, in task order, and plans on. */
  apply(): Eventually<Step>;
  /**
   * The run is stopped (not taken back) in the middle of a step: what is kept of the messages that its tasks, by id, had begun
   * to stream; null when nothing is. The checkpoint made has the same tasks to run next. Asked of the root alone: what
   * was streamed within a task's subgraph is that task's.
   */
  cut?(streamed: ReadonlyMap<string, readonly StreamedFact[]>): Step | null;
  /** The graph that a task's node is. Asked once for each `call` that said `subgraph`. */
  enter(task: string): Inner;
  /**
   * Of a subgraph that has come to its end, or failed with `failure`: what that is to the task whose node it is. The task is
   * then settled with it, as with what a body returned.
   */
  outcome(failure: PlainError | null): TaskOutcome;
  /**
   * Of a graph that drives itself: the run comes to its end, `stopped` or not. Resolves, without waiting for bodies, with
   * what is still to be stored, null where that is nothing. What its tasks do from here on reaches nothing.
   */
  end?(stopped: boolean): Eventually<Step | null>;
  /** Of a graph that drives itself: nothing of it is wanted any more. Called at any time, any number of times. */
  abandon?(): void;
}

/**
 * A graph within a graph, for one try of a task. It has a namespace of its own, the task's, in which its checkpoints and
 * its tasks' leavings are stored; its facts carry it. What is stored there was left by an earlier try, attempt or run, and
 * is gone on from: tasks that have ended there MUST NOT run again.
 */
export interface Inner {
  readonly ns: string;
  /** While its namespace has no checkpoint it begins at one of another branch, of which it makes its own; null: at its start. */
  readonly from: Pick<CheckpointHead, "ns" | "id"> | null;
  /**
   * `position`: the latest checkpoint in the namespace; where there is none, that of `from`, or nothing. The execution that comes back is
   * driven as the root's is; the caller MUST have driven the try before to its end, or cut it off.
   */
  open(position: Position): Execution;
}

/** Whose run it is, and the ids and times that an execution needs; the caller's ports stand behind it. */
export interface Source {
  readonly tenant: string;
  now(): number;
  /** A new checkpoint id, above every earlier one of the thread: `made`, where that is. */
  checkpointId(step: number, made?: string): string;
}

/** Computes graphs. The run's actor knows this port alone, not which kind of graph stands behind it. */
export interface Engine {
  has(graph: string): boolean;
  graphs(): readonly string[];
  /** The graph as a statechart, for drawings; undefined when it is unknown, or no kind that can be drawn. */
  chart?(graph: string): Statechart | undefined;
  /**
   * The graph as clients draw it, `levels` of subgraphs in the place of their nodes (all for Infinity).
   * @param config the assistant's: some graphs are made anew by it
   * @throws ServiceError `graph.not_found`
   */
  drawing(graph: string, levels: number, config: JsonObject): Eventually<Drawing>;
  /** What the graph takes and gives. @throws ServiceError `graph.not_found` */
  schemas(graph: string, config: JsonObject): Eventually<GraphSchemas>;
  /**
   * The same of its subgraphs at all levels, by the nodes that lead to them (`node|node`); as `graph_id` the name under which
   * each is served itself, else that of its own.
   * @throws ServiceError `graph.not_found`
   */
  subgraphs(graph: string, config: JsonObject): Eventually<ReadonlyMap<string, GraphSchemas>>;
  /** Is this node of a graph, or of the subgraph at namespace `ns` in it, a graph itself? False where there is none. */
  isSubgraph(graph: string, ns: string, node: string): boolean;
  /** @throws ServiceError `graph.not_found` */
  open(run: RunRecord, position: Position, source: Source, stage: Stage): Execution;
  /**
   * The superstep that these writes are: applied by the channels' rules, and led on by the edges of `as_node`. Pure, as an execution is: it
   * stores nothing, runs no node body, and takes times and ids from `source` alone. It may be asked again, from another position,
   * when the thread has moved on meanwhile. Supersteps that follow one another are computed each from what the one before
   * made, without any leavings.
   * @throws ServiceError `graph.not_found`; `validation.failed` and `state.*` with the fields that are wrong: an `as_node`
   *   that is no node, or cannot be told; values that the state refuses
   */
  update(asked: StateUpdate, position: Position, source: Source): Eventually<Updated>;
  /** The keys of the state that a run of this graph shows as its values; null: all, also for a graph that is unknown. */
  output(graph: string): readonly string[] | null;
  /**
   * What a run is refused for before it is admitted, as far as it can be judged then; else null. It MUST NOT throw.
   * @param interrupts what waits for an answer; null while the thread is at work, or has runs that wait
   * @param blank the thread has no state yet: what the graph's state requires must be in the input
   * @param unfinished the thread stands before nodes that it has yet to run: it was paused, changed by hand, or has failed
   */
  refuses(
    run: RunAsked,
    interrupts: Interrupts | null,
    blank?: boolean,
    unfinished?: boolean,
  ): PlainRefusal | null;
}

/** What of a run is known before it is admitted. */
export type RunAsked = Pick<RunRecord, "graph_id" | "kwargs">;

export interface PlainRefusal {
  readonly code: "resume.ambiguous" | "resume.invalid" | "validation.failed";
  readonly message: string;
  /** The fields of the request that are wrong, where it is those. */
  readonly fields?: readonly FieldError[];
}
