import type { CheckpointHead, NewCheckpoint, PlannedTask } from "../model/checkpoint.ts";
import { START } from "../graph/definition-checks.ts";
import { PULL_KIND, PUSH_KIND } from "../graph/superstep.ts";
import { isObject, type JsonObject } from "../model/json.ts";
import type { Emission, CheckpointWithState } from "../ports/engine.ts";
import {
  withStoredSubgraphStarts,
  type BranchStart,
  withBranchSubgraphStarts,
} from "./branch-from-checkpoint.ts";
import type { SaverCheckpoint } from "./saver-inputs.ts";
import { type ParentCheckpointData, toCheckpointRecord, storedLangGraphData } from "./checkpoint-records.ts";
import { serialise } from "./serialisation.ts";

/** A checkpoint in the form in which LangGraph streams it in the mode `checkpoints`. */
export interface CheckpointPayload {
  readonly config: { readonly configurable?: { readonly checkpoint_id?: string } };
  readonly values: unknown;
  readonly metadata?: { readonly source?: string; readonly step?: number; readonly parents?: JsonObject };
  readonly tasks: readonly {
    readonly id: string;
    readonly name: string;
    readonly path?: readonly unknown[];
    /** For a task whose node is a subgraph: LangGraph's config that identifies the subgraph's state. */
    readonly state?: unknown;
  }[];
  readonly parentConfig?: { readonly configurable?: { readonly checkpoint_id?: string } };
}

/** What a graph needs to know of its run. All but `goesOn` is stored with each checkpoint of the run. */
export interface CheckpointRunData {
  readonly run: string;
  readonly metadata: JsonObject;
  readonly graph: string;
  /**
   * True if the run continues from the thread's last checkpoint: it has neither an input nor a command, or it has a command that resumes.
   */
  readonly goesOn: boolean;
}

/** A planned task. Its triggers and input may be set until its checkpoint is passed to the run's actor. */
type Planned = { -readonly [K in keyof PlannedTask]: PlannedTask[K] };

/** The progress of one graph of a run, the root graph or a subgraph: its last checkpoint, its state and its next tasks. */
export class GraphProgress {
  readonly ns: string;
  readonly #marks: CheckpointRunData;
  /** Keys of the graph's state that are neither stored nor shown to clients. */
  readonly hidden: ReadonlySet<string>;
  /** The id of the graph's last checkpoint; null if it has none. */
  id: string | null;
  head: CheckpointHead | null;
  visibleState: JsonObject;
  next: readonly Planned[] = [];
  /** True if the tasks after the graph's last checkpoint are not known. */
  isNextUnknown = false;
  /** The last streamed state. Undefined once its checkpoint has been streamed. */
  streamedState: JsonObject | undefined;
  /** The update of the task that is ending, by the name of its node. */
  endingUpdate: JsonObject | undefined;
  /** The input of the graph, if it is known. */
  input: JsonObject | null = null;
  /** The branch that the graph begins with its next checkpoint; null if it begins none, or has made that checkpoint. */
  branch: BranchStart | null = null;
  /** The id of the last checkpoint that an earlier attempt of the run has made. The event of this checkpoint has been emitted already. */
  #reported: string | null;
  /** The updates of nodes since the last checkpoint, by node name. */
  #updates = new Map<string, unknown[]>();
  /** The last checkpoint. The changes of the next checkpoint are computed against it. */
  #base: ParentCheckpointData & { readonly id: string | null };

  constructor(
    ns: string,
    position: CheckpointWithState | null,
    marks: CheckpointRunData,
    hidden: ReadonlySet<string>,
  ) {
    this.ns = ns;
    this.hidden = hidden;
    this.#marks = marks;
    this.head = position?.head ?? null;
    this.id = this.head?.id ?? null;
    this.visibleState = position?.values ?? {};
    this.next = [...(this.head?.next ?? [])];
    this.#reported = this.head?.run_id === marks.run ? this.id : null;
    this.#base = baseAt(this.head, this.visibleState);
  }

  /**
   * Checks that the graph still has the nodes of its planned tasks. LangGraph silently skips tasks of missing nodes, and the interrupts of
   * these tasks.
   * @throws Error `GraphChangedError` if the graph would continue with such a task
   */
  checkNodes(id: string, { tasks }: CheckpointPayload, raw: SaverCheckpoint | undefined): void {
    if (this.ns === "" && !this.#marks.goesOn) return;
    const from = raw === undefined ? id : raw.source === "fork" ? raw.parent : undefined;
    if (this.head === null || this.head.id !== from) return;
    const planned = new Set(tasks.map(({ name }) => name));
    const gone = this.head.next.filter(({ name }) => !planned.has(name)).map(({ name }) => name);
    if (gone.length > 0) throw graphChanged(String(this.#marks.metadata["graph_id"]), gone);
  }

  /**
   * Records a checkpoint that LangGraph streams: a new checkpoint, or the checkpoint from which the graph continues.
   * @param id the id under which it is stored
   * @param raw the checkpoint that was put to the saver; undefined if the graph continues from a stored checkpoint
   */
  checkpoint(
    id: string,
    payload: CheckpointPayload,
    raw: SaverCheckpoint | undefined,
  ): readonly [Emission | undefined, NewCheckpoint | undefined] {
    const shown = toStateObject(payload.values);
    const quiet = this.streamedState === undefined;
    this.streamedState = undefined;
    const known = this.head !== null && this.id === id ? this.head : null;
    const planned = payload.tasks.map(plannedTaskOf);
    const next =
      this.branch === null
        ? withStoredSubgraphStarts(planned, known)
        : withBranchSubgraphStarts(this.branch, planned);
    const { source = "loop", step = 0 } = payload.metadata ?? {};
    let made: NewCheckpoint | undefined;
    if (raw !== undefined) made = this.#make(raw, shown, next);
    else if (known === null) throw new TypeError(`The checkpoint ${id} is told of, and was never put`);
    this.id = id;
    this.visibleState = shown;
    this.next = next;
    this.isNextUnknown = false;
    const head = this.head ?? undefined;
    const input = source === "input" && quiet;
    const { ns } = this;
    const fact = { t: "checkpoint", id, ns, step, input } as const;
    const shownFact = quiet && !input ? ({ ...fact, shows: "rest" } as const) : fact;
    if (this.#reported === id) {
      this.#reported = null;
      return [undefined, made];
    }
    return [
      head === undefined ? { fact: shownFact, values: shown } : { fact: shownFact, values: shown, head },
      made,
    ];
  }

  /**
   * Records a checkpoint that was put to the saver but is not streamed, because the graph stops at it. Without the streamed checkpoint, the
   * next tasks are not known.
   */
  unstreamedCheckpoint(raw: SaverCheckpoint): readonly [Emission | undefined, NewCheckpoint] {
    const { id } = raw;
    const values = this.streamedState ?? this.visibleState;
    const quiet = this.streamedState === undefined;
    this.streamedState = undefined;
    const next: Planned[] = [];
    const made = this.#make(raw, values, next);
    this.id = id;
    this.visibleState = values;
    this.next = next;
    this.isNextUnknown = true;
    const fact = {
      t: "checkpoint",
      id,
      ns: this.ns,
      step: made.step,
      input: false,
      shows: "values",
    } as const;
    return [quiet ? undefined : { fact, values, head: made }, made];
  }

  /**
   * Uses the last streamed state as a state without a checkpoint: some tasks of the step have ended, and the step continues. Returns the
   * event that shows this state; undefined if no state was streamed.
   */
  stateWithoutCheckpoint(): Emission | undefined {
    const { streamedState: values, id, ns, head } = this;
    this.streamedState = undefined;
    if (values === undefined) return undefined;
    const step = head?.step ?? 0;
    const fact = {
      t: "checkpoint",
      // Empty for a subgraph that was compiled without a checkpointer.
      id: id ?? "",
      ns,
      step,
      input: false,
      shows: "values",
      inline: { values },
    } as const;
    return { fact };
  }

  /** Adds the graph's next tasks, which were read from LangGraph after the graph had stopped. */
  addNextTasks(tasks: CheckpointPayload["tasks"]): void {
    this.isNextUnknown = false;
    (this.next as Planned[]).push(...tasks.map(plannedTaskOf));
  }

  addUpdate(name: string, update: unknown): void {
    const known = this.#updates.get(name);
    if (known === undefined) this.#updates.set(name, [update]);
    else known.push(update);
  }

  taskStarted(id: string, triggers: readonly string[], sent: { readonly value: unknown } | undefined): void {
    const task = this.next.find((each) => each.id === id);
    if (task === undefined || Object.isFrozen(task)) return;
    task.triggers = triggers;
    if (sent !== undefined && task.path[0] === PUSH_KIND) task.input = sent;
  }

  #make(raw: SaverCheckpoint, shown: JsonObject, next: readonly Planned[]): NewCheckpoint {
    const before = raw.parent === this.#base.id ? this.#base : null;
    const record = toCheckpointRecord(raw, shown, before);
    const { run, graph } = this.#marks;
    const { branch: lead } = this;
    this.branch = null;
    // Members are listed one by one, because an object literal that begins with a spread costs a microsecond for each member.
    const made = {
      id: record.id,
      // A branch may begin at a checkpoint in another namespace. That checkpoint is not stored as the parent, because a parent is always in
      // the same namespace.
      parent: lead === null || lead.ns === this.ns ? record.parent : null,
      ns: record.ns,
      step: record.step,
      source: record.source,
      created_at: record.created_at,
      run_id: run,
      metadata: this.#metadata(record.metadata),
      writes: this.#takeWrites(record.source),
      next,
      engine: record.engine,
      graph,
      changes: record.changes,
    };
    this.#base = baseAt(made, shown);
    this.head = made;
    return made;
  }

  /**
   * Adds the run's metadata to the metadata of a checkpoint. LangGraph has usually added it already, because it gets the run's metadata
   * with the configuration.
   */
  #metadata(own: JsonObject): JsonObject {
    const { metadata } = this.#marks;
    for (const key of Object.keys(metadata)) if (own[key] !== metadata[key]) return { ...own, ...metadata };
    return own;
  }

  #takeWrites(source: string): JsonObject | null {
    const updates = this.#updates;
    this.#updates = new Map();
    if (source === "input") return this.input === null ? null : { [START]: this.input };
    if (updates.size === 0) return null;
    const one = (list: unknown[]) => (list.length === 1 ? list[0] : list);
    return Object.fromEntries([...updates].map(([name, list]) => [name, one(list)]));
  }
}

function graphChanged(graph: string, gone: readonly string[]): Error {
  const nodes = [...new Set(gone)].map((name) => `"${name}"`).join(", ");
  const message =
    `The graph "${graph}" has changed since the thread paused, and the thread cannot go on: it waits at ${nodes}, ` +
    `which the graph has no more. Nothing is lost: name a node to go on with (command.goto), change the state, or bring the node back`;
  return Object.assign(new Error(message), { name: "GraphChangedError" });
}

function baseAt(
  head: CheckpointHead | null,
  shown: JsonObject,
): ParentCheckpointData & { readonly id: string | null } {
  const channels = storedLangGraphData(head?.engine ?? null)?.channels;
  return { id: head?.id ?? null, shown, ...(channels !== undefined && { channels }) };
}

/** The path of a task in LangGraph's form. Elements that are not strings or numbers are left out. */
export function taskPathOf(path: readonly unknown[] | undefined, name: string): readonly (string | number)[] {
  const known = path?.filter(
    (part): part is string | number => typeof part === "string" || typeof part === "number",
  );
  return known === undefined || known.length === 0 ? [PULL_KIND, name] : known;
}

export function plannedTaskOf({ id, name, path }: CheckpointPayload["tasks"][number]): Planned {
  const known = taskPathOf(path, name);
  const trigger = known[0] === PUSH_KIND ? PUSH_KIND : name === START ? name : `branch:to:${name}`;
  return { id, name, path: known, triggers: [trigger] };
}

export const isInterruptPayload = (
  payload: unknown,
): payload is { readonly __interrupt__: readonly unknown[] } =>
  isObject(payload) && Array.isArray(payload["__interrupt__"]);

/**
 * The state as clients see it, which is always an object. In the functional API, the state is one value: an object is shown as it is, a
 * missing value as an empty object, and any other value as the member `__end__`.
 */
export function toStateObject(values: unknown): JsonObject {
  const shown = serialise(values ?? {});
  return isObject(shown) ? shown : { __end__: shown };
}

/** Whether the input of a task consists of exactly the members of the state. */
export function isWholeState(given: unknown, state: JsonObject): boolean {
  if (!isObject(given)) return false;
  const keys = Object.keys(given);
  return keys.length === Object.keys(state).length && keys.every((key) => given[key] === state[key]);
}
