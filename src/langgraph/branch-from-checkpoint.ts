import type { CheckpointHead, PlannedTask } from "../model/checkpoint.ts";
import type { JsonObject } from "../model/json.ts";
import type { RunRecord } from "../model/run.ts";
import { startOf, startWithin, type Within } from "../model/run-start.ts";
import type { Position } from "../ports/engine.ts";
import type { Stage } from "../ports/engine-host.ts";
import { taskNs } from "../graph/interrupts.ts";

/** A graph that goes on, on a branch of its own, from a checkpoint, and a graph within it from one of its own. */
export interface Lead {
  /** Where that checkpoint is, and what ran next from there. */
  readonly ns: string;
  readonly next: readonly PlannedTask[];
  /** The checkpoints that the graphs within begin at, from the outermost down. */
  readonly within: readonly Within[];
}

/**
 * What the run's root graph is led by: its place names a subgraph's checkpoint, and it has made none itself yet. An input
 * goes to the root graph, and an answer to where the question waits.
 */
export function leadOf({ kwargs }: RunRecord, { head }: Position): Lead | null {
  const { command, config, input } = kwargs;
  const { configurable } = config;
  if (command !== null || (input ?? null) !== null) return null;
  if (head === null || startOf(configurable) !== head.id) return null;
  const within = startWithin(configurable);
  return within.length === 0 ? null : { ns: "", next: head.next, within };
}

/** Tasks that are planned once more: the one in which the graph ran that is gone on from is told where that begins. */
export function ledOn(
  { ns, next: before, within }: Lead,
  next: readonly PlannedTask[],
): readonly PlannedTask[] {
  const [first] = within;
  const led = before.find(({ name, id }) => first !== undefined && isAt(first.ns, taskNs(ns, name, id)));
  if (led === undefined) return next;
  const path = JSON.stringify(led.path);
  return next.map((task) =>
    task.name === led.name && JSON.stringify(task.path) === path ? { ...task, from: within } : task,
  );
}

/** Tasks as a checkpoint that is stored has planned them: where graphs within begin stands there. */
export function alikeIn(tasks: readonly PlannedTask[], known: CheckpointHead | null): readonly PlannedTask[] {
  const led = known?.next.filter(({ from }) => from !== undefined) ?? [];
  if (led.length === 0) return tasks;
  return tasks.map((task) => led.find(({ id }) => id === task.id) ?? task);
}

const isAt = (ns: string, task: string) => ns === task || ns.startsWith(`${task}|`);

/** A task whose body is about to run. */
interface Task {
  readonly ns: string;
  readonly name: string;
  readonly task: string;
}

/** What it needs of the attempt's chronicle. */
interface Chronicled {
  readonly root: { lead: Lead | null };
  loop(ns: string): { lead: Lead | null };
  stands(ns: string): boolean;
}

/**
 * Leads graphs within tasks to the checkpoints that they begin at. To LangGraph a subgraph of a step that runs once more is a
 * new one, with a namespace of its own: its `checkpoint_map` tells it to begin at a checkpoint there, and that is the one of
 * the other branch.
 */
export class Leading {
  readonly #position: Position;
  readonly #read: Stage["read"];
  readonly #chronicle: Chronicled;
  readonly #isLed: boolean;
  readonly #begin = new Map<string, readonly Within[]>();

  constructor(run: RunRecord, position: Position, stage: Stage, chronicle: Chronicled) {
    this.#position = position;
    this.#read = (ns, id) => stage.read(ns, id);
    this.#chronicle = chronicle;
    const lead = leadOf(run, position);
    this.#isLed = lead !== null;
    chronicle.root.lead = lead;
  }

  /** What is added to the `checkpoint_map` of a task's body; undefined: nothing, the graph within has begun before. */
  async into({ ns, name, task }: Task, from: readonly Within[]): Promise<JsonObject | undefined> {
    const [first] = from;
    if (first === undefined) return undefined;
    // A body may run several graphs: numbers tell them apart.
    const inner = `${taskNs(ns, name, task)}${/(\|\d+)*$/.exec(first.ns)?.[0] ?? ""}`;
    if (this.#chronicle.stands(inner) || (await this.#read(inner, null)) !== null) return undefined;
    this.#begin.set(inner, from);
    return { [inner]: first.id };
  }

  /** The checkpoint that a graph begins at instead of one of its own; undefined: it has one, or begins at its start. */
  begin(ns: string, id: string | null): Promise<Position | null> | undefined {
    if (ns === "") {
      const isHere = this.#isLed && id === this.#position.head?.id;
      return isHere ? Promise.resolve(asMade(this.#position)) : undefined;
    }
    const [first, ...within] = this.#begin.get(ns) ?? [];
    return first === undefined || first.id !== id ? undefined : this.#lead(ns, first, within);
  }

  async #lead(ns: string, first: Within, within: readonly Within[]): Promise<Position | null> {
    const position = await this.#read(first.ns, first.id);
    if (position === null || position.head === null) return null;
    this.#chronicle.loop(ns).lead = { ns: first.ns, next: position.head.next, within };
    return asMade(position);
  }
}

/** As if a run had come there by itself: of one that was made by hand LangGraph makes no branch. */
function asMade(position: Position): Position {
  const { head } = position;
  return head === null ? position : { ...position, head: { ...head, source: "loop" } };
}
