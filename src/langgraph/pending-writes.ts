import { emptyWrites, type PendingTaskWrites } from "../model/checkpoint.ts";
import type { Interrupt } from "../model/interrupt.ts";
import { isObject } from "../model/json.ts";
import type { SaverWrites } from "./saver-inputs.ts";
import { addWrites } from "./checkpoint-records.ts";
import { serialise } from "./serialisation.ts";

/** LangGraph's task id for writes that belong to no task, such as those of a command. */
const NULL_TASK_ID = "00000000-0000-0000-0000-000000000000";

/** Identifies a task: its namespace, the checkpoint at which it was planned, and its id. */
export type TaskKey = Pick<PendingTaskWrites, "ns" | "checkpoint" | "task">;

const keyOf = ({ ns, checkpoint, task }: TaskKey) => `${ns} ${checkpoint} ${task}`;

/** Pending writes of a run's tasks, and which of them have changed since they were passed to the run's actor. */
export class PendingWrites {
  readonly #byTask = new Map<string, PendingTaskWrites>();
  /** The keys of tasks whose writes have changed, in the order of the writes. */
  readonly #changed = new Set<string>();
  /** The origin of each interrupt, by interrupt id: the path of tasks to the innermost task that wrote the interrupt. */
  readonly #asked = new Map<string, readonly string[]>();

  addStored(writes: readonly PendingTaskWrites[]): void {
    for (const left of writes) if (!this.#byTask.has(keyOf(left))) this.#byTask.set(keyOf(left), left);
  }

  get(taskKey: TaskKey): PendingTaskWrites | undefined {
    return this.#byTask.get(keyOf(taskKey));
  }

  add({ ns, checkpoint, task, writes }: SaverWrites, name: string | undefined): void {
    const site = { ns, checkpoint, task, name: name ?? (task === NULL_TASK_ID ? "__input__" : "") };
    for (const [channel, value] of writes) if (channel === "__interrupt__") this.#noteOrigin(site, value);
    const record = addWrites(site, writes, this.get(site) ?? emptyWrites(site));
    const { interrupts, answered } = record;
    const withOrigins = (all: readonly Interrupt[]) => all.map((asked) => this.withOrigin(asked));
    if (answered !== undefined) this.set({ ...record, answered: withOrigins(answered) });
    else if (interrupts.length > 0) this.set({ ...record, interrupts: withOrigins(interrupts) });
    else this.set(record);
  }

  set(left: PendingTaskWrites): void {
    const key = keyOf(left);
    this.#byTask.set(key, left);
    this.#changed.add(key);
  }

  /** Forgets writes for which `isPast` returns true, except those that were not passed to the run's actor yet. */
  forget(isPast: (left: PendingTaskWrites) => boolean): void {
    for (const [key, left] of this.#byTask) {
      if (!this.#changed.has(key) && isPast(left)) this.#byTask.delete(key);
    }
  }

  markHandedOver(taskKey: TaskKey): void {
    this.#changed.delete(keyOf(taskKey));
  }

  get isEmpty(): boolean {
    return this.#changed.size === 0;
  }

  /** Returns the changed writes for which `isIt` returns true, and marks them as passed to the run's actor. */
  takeChanged(isIt: (left: PendingTaskWrites) => boolean): readonly PendingTaskWrites[] {
    const taken: PendingTaskWrites[] = [];
    for (const key of this.#changed) {
      const left = this.#byTask.get(key);
      if (left === undefined || !isIt(left)) continue;
      taken.push(left);
      this.#changed.delete(key);
    }
    return taken;
  }

  /**
   * Converts LangGraph's interrupt to the form of the API, and adds the recorded origin of the interrupt (`ns`), because LangGraph may not
   * provide it.
   */
  withOrigin(asked: unknown): Interrupt {
    const { value = null, id = "", ns = [], ...rest } = serialise(asked) as Partial<Interrupt>;
    return { ...rest, value, id, resumable: true, ns: this.#asked.get(id) ?? ns, when: "during" };
  }

  /**
   * Records the origin of interrupts. Only the first write of an interrupt counts: the innermost task writes it first, and the tasks around
   * it write it again.
   */
  #noteOrigin(
    { ns, name, task }: Omit<TaskKey, "checkpoint"> & { readonly name: string },
    value: unknown,
  ): void {
    for (const asked of [value].flat()) {
      const id = isObject(asked) ? asked["id"] : undefined;
      if (typeof id !== "string" || this.#asked.has(id)) continue;
      this.#asked.set(id, [...(ns === "" ? [] : ns.split("|")), `${name}:${task}`]);
    }
  }
}
