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
import type { ExecutionServices, Position } from "../ports/engine.ts";
import type { EngineHost } from "../ports/engine-host.ts";
import { taskNamespace } from "../graph/interrupts.ts";
import { checkpointTupleOf, newLangGraphData, storedLangGraphData } from "./checkpoint-records.ts";
import { SaverCheckpoint } from "./saver-checkpoints.ts";
import type { Library } from "./user-library.ts";

/** The start of a branch: a graph continues from an older checkpoint, and a subgraph in it from a checkpoint of its own. */
export interface BranchStart {
  /** The checkpoint from which the graph continues: its namespace (`ns`), and the tasks that were planned after it (`next`). */
  readonly ns: string;
  readonly next: readonly PlannedTask[];
  /** The checkpoints at which the subgraphs begin, from the outermost to the innermost. */
  readonly within: readonly SubgraphCheckpoint[];
}

/**
 * Returns where a run begins a branch: at the subgraph's checkpoint that the run's configuration names. Null if it
 * names none, or if the run has already made a checkpoint. Also null for a run with an input, which goes to the root
 * graph, and for a run with a command, whose answer goes to the interrupted task.
 */
export function branchStartOf({ kwargs }: RunRecord, { head }: Position): BranchStart | null {
  const { command, config, input } = kwargs;
  const { configurable } = config;
  if (command !== null || (input ?? null) !== null) return null;
  if (head === null || rootCheckpointOf(configurable) !== head.id) return null;
  const within = subgraphCheckpointsOf(configurable);
  return within.length === 0 ? null : { ns: "", next: head.next, within };
}

/**
 * Returns the planned tasks of a branch that starts at a checkpoint of a subgraph. The task that calls this subgraph gets
 * the property `from`: the checkpoints from which the subgraph, and those within it, start.
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
 * Adds `from` (where a task's subgraphs begin) to the planned tasks for which the stored checkpoint has it.
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

/** A task whose node function is about to run. */
interface Task {
  readonly ns: string;
  readonly name: string;
  readonly task: string;
}

/** The parts of an attempt that branching needs. */
interface Parts {
  readonly library: Library;
  readonly run: RunRecord;
  readonly position: Position;
  readonly stage: Pick<EngineHost, "read">;
  readonly source: Pick<ExecutionServices, "checkpointId" | "now">;
  readonly recorder: {
    readonly root: { branch: BranchStart | null };
    loop(ns: string): { readonly id: string | null; branch: BranchStart | null };
    hasCheckpoint(ns: string): boolean;
  };
  /** Adds a checkpoint in the same way as one that LangGraph puts to the saver. */
  put(made: SaverCheckpoint): void;
}

/**
 * Makes the branch of a run that continues from an older checkpoint: a copy of that checkpoint (a fork), from which
 * LangGraph continues. The tasks after a fork have new ids, so they run again and interrupt again. LangGraph 1.4 and later
 * forks the root graph by itself. Earlier versions continue from the older checkpoint itself, and the interrupts that they
 * store there are never found.
 *
 * It also makes subgraphs begin at checkpoints of another branch. When a step runs again, its subgraph gets a new namespace,
 * which has no checkpoints. The subgraph's `checkpoint_map` therefore gets an entry that names the other branch's checkpoint
 * under the new namespace. When LangGraph reads this checkpoint, it gets a fork of it.
 */
export class CheckpointBranch {
  readonly #parts: Parts;
  /** True when the run continues from a checkpoint that its configuration names: one of the root graph, or one of a subgraph. */
  readonly #goesBack: boolean;
  /** True when the configuration names the checkpoint of a subgraph. */
  readonly #startsInSubgraph: boolean;
  /**
   * The checkpoints at which subgraphs begin, by namespace, for namespaces without task ids. Such a namespace is the same on
   * every branch; all other namespaces contain the new ids of the tasks.
   */
  readonly #lasting: ReadonlyMap<string, SubgraphCheckpoint>;
  readonly #begin = new Map<string, readonly SubgraphCheckpoint[]>();
  readonly #forks = new Map<string, Promise<Position | null>>();

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
   * Entries to add to the `checkpoint_map` of a task's node function; undefined when the subgraph has checkpoints
   * already.
   */
  async checkpointMapFor(
    { ns, name, task }: Task,
    from: readonly SubgraphCheckpoint[],
  ): Promise<JsonObject | undefined> {
    const [first] = from;
    if (first === undefined) return undefined;
    const { recorder, stage } = this.#parts;
    // A node function may call several graphs; a number at the end of the namespace distinguishes them.
    const inner = `${taskNamespace(ns, name, task)}${/(\|\d+)*$/.exec(first.ns)?.[0] ?? ""}`;
    if (recorder.hasCheckpoint(inner) || (await stage.read(inner, null)) !== null) return undefined;
    this.#begin.set(inner, from);
    return { [inner]: first.id };
  }

  /**
   * Answers a read of a graph's checkpoint by its id, or of the latest one (`id` null), with the checkpoint at which the
   * graph begins on the branch. Undefined when the graph begins at its own latest checkpoint.
   */
  startPosition(ns: string, id: string | null): Promise<Position | null> | undefined {
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

  #fork(ns: string, made: Promise<Position | null>): Promise<Position | null> {
    this.#forks.set(ns, made);
    return made;
  }

  /**
   * Answers a read after the fork was made. Returns the fork for its own id, and as the latest checkpoint: LangGraph reads the latest one
   * to find out whether it has to branch.
   */
  #again(fork: Position | null, ns: string, id: string | null): Promise<Position | null> | Position | null {
    return fork !== null && (id === null || id === fork.head?.id) ? fork : this.#parts.stage.read(ns, id);
  }

  /**
   * Makes the fork of the root graph. If the named checkpoint is already the latest one, and the run starts
   * at no checkpoint of a subgraph, returns it unchanged: continuing from it needs no branch.
   */
  async #forkOfRoot(position: Position): Promise<Position | null> {
    const { stage } = this.#parts;
    const newest = this.#startsInSubgraph ? null : ((await stage.read("", null))?.head?.id ?? null);
    return newest === position.head?.id ? position : this.#forkOf(position, "");
  }

  async #forkWithin(
    ns: string,
    first: SubgraphCheckpoint,
    within: readonly SubgraphCheckpoint[],
  ): Promise<Position | null> {
    const { recorder, stage } = this.#parts;
    const position = await stage.read(first.ns, first.id);
    if (position === null || position.head === null) return null;
    recorder.loop(ns).branch = { ns: first.ns, next: position.head.next, within };
    return this.#forkOf(position, ns);
  }

  /** The ids of the checkpoints of the graphs around a namespace, by their namespaces. */
  #parentsOf(ns: string): Record<string, string> {
    const parents: Record<string, string> = {};
    const segments = ns.split("|");
    for (const [depth, parentNs] of parentNamespaces(ns).entries()) {
      const { id } = this.#parts.recorder.loop(parentNs);
      // A number in a namespace distinguishes the graphs that one node function calls. They are not parents of each
      // other.
      if (id !== null && !/^\d+$/.test(segments[depth] ?? "")) parents[parentNs] = id;
    }
    return parents;
  }

  #forkOf(position: Position, ns: string): Position {
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
