import type { CheckpointHead, PlannedTask } from "../model/checkpoint.ts";
import type { JsonObject } from "../model/json.ts";
import type { RunRecord } from "../model/run.ts";
import {
  rootCheckpointOf,
  subgraphCheckpointsOf,
  type SubgraphCheckpoint,
} from "../model/start-checkpoint.ts";
import type { Position } from "../ports/engine.ts";
import type { EngineHost } from "../ports/engine-host.ts";
import { taskNamespace } from "../graph/interrupts.ts";

/** The start of a branch: a graph goes on from an older checkpoint, and a subgraph in it from a checkpoint of its own. */
export interface BranchStart {
  /** The namespace of the checkpoint, and the tasks that were planned after it. */
  readonly ns: string;
  readonly next: readonly PlannedTask[];
  /** The checkpoints at which the subgraphs begin, from the outermost to the innermost. */
  readonly within: readonly SubgraphCheckpoint[];
}

/**
 * The branch that a run makes, when its configuration names a subgraph's checkpoint and it has made no checkpoint itself.
 * Null for a run with an input, which goes to the root graph, or with a command, whose answer goes to the interrupted task.
 */
export function branchStartOf({ kwargs }: RunRecord, { head }: Position): BranchStart | null {
  const { command, config, input } = kwargs;
  const { configurable } = config;
  if (command !== null || (input ?? null) !== null) return null;
  if (head === null || rootCheckpointOf(configurable) !== head.id) return null;
  const within = subgraphCheckpointsOf(configurable);
  return within.length === 0 ? null : { ns: "", next: head.next, within };
}

/** Planned tasks of a branch: the task whose subgraph is branched gets `from`, the checkpoints at which its subgraphs begin. */
export function withBranchStarts(
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

/** Planned tasks with `from` (where their subgraphs begin) taken from the stored checkpoint, if that has it. */
export function withStoredSubgraphStarts(
  tasks: readonly PlannedTask[],
  known: CheckpointHead | null,
): readonly PlannedTask[] {
  const led = known?.next.filter(({ from }) => from !== undefined) ?? [];
  if (led.length === 0) return tasks;
  return tasks.map((task) => led.find(({ id }) => id === task.id) ?? task);
}

const isAt = (ns: string, task: string) => ns === task || ns.startsWith(`${task}|`);

/** A task whose node body is about to run. */
interface Task {
  readonly ns: string;
  readonly name: string;
  readonly task: string;
}

/** The part of the attempt's recorder that branching needs. */
interface BranchRecorder {
  readonly root: { branch: BranchStart | null };
  loop(ns: string): { branch: BranchStart | null };
  hasCheckpoint(ns: string): boolean;
}

/**
 * Makes subgraphs begin at checkpoints of another branch. For LangGraph, a subgraph of a step that runs again is a new one,
 * with a new namespace. So its `checkpoint_map` gets an entry for the new namespace, and a read of that checkpoint returns
 * the one of the other branch.
 */
export class CheckpointBranch {
  readonly #position: Position;
  readonly #read: EngineHost["read"];
  readonly #recorder: BranchRecorder;
  readonly #isLed: boolean;
  readonly #begin = new Map<string, readonly SubgraphCheckpoint[]>();

  constructor(run: RunRecord, position: Position, stage: EngineHost, recorder: BranchRecorder) {
    this.#position = position;
    this.#read = (ns, id) => stage.read(ns, id);
    this.#recorder = recorder;
    const lead = branchStartOf(run, position);
    this.#isLed = lead !== null;
    recorder.root.branch = lead;
  }

  /** Entries to add to the `checkpoint_map` of a task's body; undefined when the subgraph has checkpoints already. */
  async checkpointMapFor(
    { ns, name, task }: Task,
    from: readonly SubgraphCheckpoint[],
  ): Promise<JsonObject | undefined> {
    const [first] = from;
    if (first === undefined) return undefined;
    // A body may run several graphs; a number at the end of the namespace distinguishes them.
    const inner = `${taskNamespace(ns, name, task)}${/(\|\d+)*$/.exec(first.ns)?.[0] ?? ""}`;
    if (this.#recorder.hasCheckpoint(inner) || (await this.#read(inner, null)) !== null) return undefined;
    this.#begin.set(inner, from);
    return { [inner]: first.id };
  }

  /** The checkpoint of another branch at which a graph begins; undefined when it begins at its own, or without one. */
  startPosition(ns: string, id: string | null): Promise<Position | null> | undefined {
    if (ns === "") {
      const isHere = this.#isLed && id === this.#position.head?.id;
      return isHere ? Promise.resolve(asMade(this.#position)) : undefined;
    }
    const [first, ...within] = this.#begin.get(ns) ?? [];
    return first === undefined || first.id !== id ? undefined : this.#lead(ns, first, within);
  }

  async #lead(
    ns: string,
    first: SubgraphCheckpoint,
    within: readonly SubgraphCheckpoint[],
  ): Promise<Position | null> {
    const position = await this.#read(first.ns, first.id);
    if (position === null || position.head === null) return null;
    this.#recorder.loop(ns).branch = { ns: first.ns, next: position.head.next, within };
    return asMade(position);
  }
}

/** The position with `source` "loop": LangGraph makes no branch from a checkpoint that a state update made. */
function asMade(position: Position): Position {
  const { head } = position;
  return head === null ? position : { ...position, head: { ...head, source: "loop" } };
}
