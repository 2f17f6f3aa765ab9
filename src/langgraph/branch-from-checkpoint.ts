import type { CheckpointMetadata } from "@langchain/langgraph-checkpoint";
import type { CheckpointHead, PlannedTask } from "../model/checkpoint.ts";
import type { JsonObject } from "../model/json.ts";
import type { RunRecord } from "../model/run.ts";
import {
  parentNamespaces,
  rootCheckpointOf,
  subgraphCheckpointsOf,
  type SubgraphCheckpoint,
} from "../model/start-checkpoint.ts";
import type { ExecutionServices, CheckpointWithState } from "../ports/engine.ts";
import type { EngineHost } from "../ports/engine-host.ts";
import { taskNamespace } from "../graph/interrupts.ts";
import { checkpointTupleOf, newLangGraphData, storedLangGraphData } from "./checkpoint-records.ts";
import { SaverCheckpoint } from "./saver-inputs.ts";
import type { LangGraphLibrary } from "./user-library.ts";

/** Where a graph begins a branch: the graph continues from an older checkpoint, and so do subgraphs within it. */
export interface BranchStart {
  /** The namespace of the checkpoint from which the graph continues. */
  readonly ns: string;
  /** The tasks that were planned at that checkpoint. */
  readonly next: readonly PlannedTask[];
  /** The checkpoints from which the subgraphs continue, from the outermost to the innermost. */
  readonly within: readonly SubgraphCheckpoint[];
}

/**
 * Returns where a run begins a branch, if its configuration names the checkpoint of a subgraph; otherwise null. Also null if the run has
 * already made a checkpoint, has an input (which goes to the root graph) or has a command (whose answer goes to the interrupted task).
 */
export function branchStartOf({ kwargs }: RunRecord, { head }: CheckpointWithState): BranchStart | null {
  const { command, config, input } = kwargs;
  const { configurable } = config;
  if (command !== null || (input ?? null) !== null) return null;
  if (head === null || rootCheckpointOf(configurable) !== head.id) return null;
  const within = subgraphCheckpointsOf(configurable);
  return within.length === 0 ? null : { ns: "", next: head.next, within };
}

/**
 * Returns the planned tasks `next` of a branch. The task that runs the first subgraph of `within` gets the property `from`: the checkpoints
 * from which this subgraph and the subgraphs within it continue.
 */
export function withBranchSubgraphStarts(
  { ns, next: before, within }: BranchStart,
  next: readonly PlannedTask[],
): readonly PlannedTask[] {
  const [first] = within;
  const led = before.find(
    ({ name, id }) => first !== undefined && isAt(first.ns, taskNamespace(ns, name, id)),
  );
  if (led === undefined) return next;
  const path = JSON.stringify(led.path);
  return next.map((task) =>
    task.name === led.name && JSON.stringify(task.path) === path ? { ...task, from: within } : task,
  );
}

/**
 * Replaces planned tasks by the tasks with the same ids in the stored checkpoint `known`, if these have `from`: the checkpoints from which
 * a task's subgraphs continue.
 */
export function withStoredSubgraphStarts(
  tasks: readonly PlannedTask[],
  known: CheckpointHead | null,
): readonly PlannedTask[] {
  const led = known?.next.filter(({ from }) => from !== undefined) ?? [];
  if (led.length === 0) return tasks;
  return tasks.map((task) => led.find(({ id }) => id === task.id) ?? task);
}

const isAt = (ns: string, task: string) => ns === task || ns.startsWith(`${task}|`);

/** A task whose node function is about to run, with its namespace, node and id. */
interface Task {
  readonly ns: string;
  readonly name: string;
  readonly task: string;
}

/** What {@link CheckpointBranch} uses of an attempt. */
interface Parts {
  readonly library: LangGraphLibrary;
  readonly run: RunRecord;
  readonly position: CheckpointWithState;
  readonly stage: Pick<EngineHost, "read">;
  readonly source: Pick<ExecutionServices, "checkpointId" | "now">;
  readonly recorder: {
    readonly root: { branch: BranchStart | null };
    loop(ns: string): { readonly id: string | null; branch: BranchStart | null };
    hasCheckpoint(ns: string): boolean;
  };
  /** Handles a checkpoint like one that LangGraph puts to the saver. */
  put(made: SaverCheckpoint): void;
}

/**
 * The branch of a run that continues from an older checkpoint. It begins with a fork, which is a copy of that checkpoint. The tasks after a
 * fork have new ids, so they run again and interrupt again. LangGraph before 1.4 does not fork the root graph itself: it stores the new
 * interrupts at the older checkpoint, where they are never found.
 *
 * Subgraphs also continue from checkpoints of another branch. When a task runs again, its subgraph has a new namespace without checkpoints.
 * So the subgraph's `checkpoint_map` gets an entry for the new namespace, with the id of the other branch's checkpoint. When LangGraph
 * reads that checkpoint, {@link startPosition} returns a fork of the checkpoint.
 */
export class CheckpointBranch {
  readonly #parts: Parts;
  /** True if the run continues from a checkpoint that its configuration names, in the root graph or in a subgraph. */
  readonly #goesBack: boolean;
  /** True if the configuration names the checkpoint of a subgraph. */
  readonly #startsInSubgraph: boolean;
  /**
   * The checkpoints from which subgraphs continue, by namespace. It contains only namespaces without task ids, which are the same on every
   * branch.
   */
  readonly #lasting: ReadonlyMap<string, SubgraphCheckpoint>;
  readonly #begin = new Map<string, readonly SubgraphCheckpoint[]>();
  readonly #forks = new Map<string, Promise<CheckpointWithState | null>>();

  constructor(parts: Parts) {
    this.#parts = parts;
    const { run, position, recorder } = parts;
    const lead = branchStartOf(run, position);
    this.#startsInSubgraph = lead !== null;
    const lasting = (lead?.within ?? []).filter(({ ns }) => !ns.includes(":"));
    this.#lasting = new Map(lasting.map((each) => [each.ns, each]));
    recorder.root.branch = lead;
    const { command, config, input } = run.kwargs;
    const start = rootCheckpointOf(config.configurable);
    const goesOn = command === null && (input ?? null) === null;
    this.#goesBack = goesOn && start !== null && start === position.head?.id;
  }

  /**
   * Entries to add to the `checkpoint_map` of a task's node function, so that its subgraph continues from the first of the checkpoints
   * `from`, which belong to the task of an earlier step. Undefined if `from` is empty, or if the subgraph has already made a checkpoint in
   * the namespace of this task.
   */
  async checkpointMapFor(
    { ns, name, task }: Task,
    from: readonly SubgraphCheckpoint[],
  ): Promise<JsonObject | undefined> {
    const [first] = from;
    if (first === undefined) return undefined;
    const { recorder, stage } = this.#parts;
    // A node function may call several graphs, whose namespaces end in a number; the number is kept.
    const inner = `${taskNamespace(ns, name, task)}${/(\|\d+)*$/.exec(first.ns)?.[0] ?? ""}`;
    if (recorder.hasCheckpoint(inner) || (await stage.read(inner, null)) !== null) return undefined;
    this.#begin.set(inner, from);
    return { [inner]: first.id };
  }

  /**
   * The checkpoint with which to answer LangGraph's read of a checkpoint (`id` null: of the latest), if the graph at `ns` begins a branch
   * there. Undefined if it does not; the caller then reads the stored checkpoint.
   */
  startPosition(ns: string, id: string | null): Promise<CheckpointWithState | null> | undefined {
    const made = this.#forks.get(ns);
    if (made !== undefined) return made.then((fork) => this.#again(fork, ns, id));
    const { position } = this.#parts;
    if (ns === "") {
      if (!this.#goesBack || id !== position.head?.id) return undefined;
      return this.#fork(ns, this.#forkOfRoot(position));
    }
    const [first = this.#lasting.get(ns), ...within] = this.#begin.get(ns) ?? [];
    return first === undefined || first.id !== id
      ? undefined
      : this.#fork(ns, this.#forkWithin(ns, first, within));
  }

  #fork(ns: string, made: Promise<CheckpointWithState | null>): Promise<CheckpointWithState | null> {
    this.#forks.set(ns, made);
    return made;
  }

  /**
   * Handles a read after the fork was made. The fork is returned for its id, and as the latest checkpoint, because LangGraph reads the
   * latest checkpoint to find out whether it has to fork by itself.
   */
  #again(
    fork: CheckpointWithState | null,
    ns: string,
    id: string | null,
  ): Promise<CheckpointWithState | null> | CheckpointWithState | null {
    return fork !== null && (id === null || id === fork.head?.id) ? fork : this.#parts.stage.read(ns, id);
  }

  /**
   * Makes the fork of the root graph. If the named checkpoint is the latest one, and no subgraph begins a branch, returns that checkpoint:
   * continuing from it needs no fork.
   */
  async #forkOfRoot(position: CheckpointWithState): Promise<CheckpointWithState | null> {
    const { stage } = this.#parts;
    const newest = this.#startsInSubgraph ? null : ((await stage.read("", null))?.head?.id ?? null);
    return newest === position.head?.id ? position : this.#forkOf(position, "");
  }

  async #forkWithin(
    ns: string,
    first: SubgraphCheckpoint,
    within: readonly SubgraphCheckpoint[],
  ): Promise<CheckpointWithState | null> {
    const { recorder, stage } = this.#parts;
    const position = await stage.read(first.ns, first.id);
    if (position === null || position.head === null) return null;
    recorder.loop(ns).branch = { ns: first.ns, next: position.head.next, within };
    return this.#forkOf(position, ns);
  }

  /** The ids of the last checkpoints of the graphs around the graph at `ns`, by namespace. */
  #parentsOf(ns: string): Record<string, string> {
    const parents: Record<string, string> = {};
    const segments = ns.split("|");
    for (const [depth, parentNs] of parentNamespaces(ns).entries()) {
      const { id } = this.#parts.recorder.loop(parentNs);
      // If a number follows `parentNs`, that graph is not a parent: one node function called both graphs.
      if (id !== null && !/^\d+$/.test(segments[depth] ?? "")) parents[parentNs] = id;
    }
    return parents;
  }

  #forkOf(position: CheckpointWithState, ns: string): CheckpointWithState {
    const { head } = position;
    if (head === null) return position;
    const { library, run, source, put } = this.#parts;
    const { checkpoint } = checkpointTupleOf(library, run.thread_id, position);
    const step = head.step + 1;
    const id = source.checkpointId(step);
    const ts = new Date(source.now()).toISOString();
    const metadata = { source: "fork", step, parents: this.#parentsOf(ns) };
    const made = new SaverCheckpoint(
      { id, ns, parent: head.id },
      { ...checkpoint, id, ts },
      metadata as CheckpointMetadata,
      {},
    );
    put(made);
    const { engine: _, ...rest } = head;
    const engine = { lg: newLangGraphData(made, storedLangGraphData(head.engine)?.channels ?? {}) };
    return {
      head: { ...rest, id, ns, parent: head.id, step, source: "fork", engine },
      values: position.values,
      writes: [],
    };
  }
}
