import { blank, type TaskWrites } from "../model/checkpoint.ts";
import type { Interrupt } from "../model/interrupt.ts";
import { isObject } from "../model/json.ts";
import type { RawWrites } from "./saver-records.ts";
import { writesRecord } from "./checkpoint-records.ts";
import { show } from "./serialisation.ts";

/** What belongs to no task: the writes of a command. */
const NULL_TASK = "00000000-0000-0000-0000-000000000000";

/** Where a task stands. */
export type Place = Pick<TaskWrites, "ns" | "checkpoint" | "task">;

const keyOf = ({ ns, checkpoint, task }: Place) => `${ns} ${checkpoint} ${task}`;

/** What the tasks of a run have left, and what of it is not handed over yet. */
export class Left {
  readonly #left = new Map<string, TaskWrites>();
  /** In order of writing. */
  readonly #changed = new Set<string>();
  /** Where questions come from: the innermost task's namespace, by id. */
  readonly #asked = new Map<string, readonly string[]>();

  /** What is stored already. */
  seed(writes: readonly TaskWrites[]): void {
    for (const left of writes) if (!this.#left.has(keyOf(left))) this.#left.set(keyOf(left), left);
  }

  at(place: Place): TaskWrites | undefined {
    return this.#left.get(keyOf(place));
  }

  take({ ns, checkpoint, task, writes }: RawWrites, name: string | undefined): void {
    const site = { ns, checkpoint, task, name: name ?? (task === NULL_TASK ? "__input__" : "") };
    for (const [channel, value] of writes) if (channel === "__interrupt__") this.#noteOrigin(site, value);
    const record = writesRecord(site, writes, this.at(site) ?? blank(site));
    const { interrupts } = record;
    if (interrupts.length === 0) this.keep(record);
    else this.keep({ ...record, interrupts: interrupts.map((asked) => this.interrupt(asked)) });
  }

  keep(left: TaskWrites): void {
    const key = keyOf(left);
    this.#left.set(key, left);
    this.#changed.add(key);
  }

  /** Handed over by other means. */
  settle(place: Place): void {
    this.#changed.delete(keyOf(place));
  }

  get isEmpty(): boolean {
    return this.#changed.size === 0;
  }

  handOver(isIt: (left: TaskWrites) => boolean): readonly TaskWrites[] {
    const taken: TaskWrites[] = [];
    for (const key of this.#changed) {
      const left = this.#left.get(key);
      if (left === undefined || !isIt(left)) continue;
      taken.push(left);
      this.#changed.delete(key);
    }
    return taken;
  }

  /** A question as the wire has it: LangGraph's own do not say where they come from. */
  interrupt(asked: unknown): Interrupt {
    const { value = null, id = "", ns = [], ...rest } = show(asked) as Partial<Interrupt>;
    return { ...rest, value, id, resumable: true, ns: this.#asked.get(id) ?? ns, when: "during" };
  }

  /** The innermost task says first what it asks, then those around it say the same. */
  #noteOrigin(
    { ns, name, task }: Omit<Place, "checkpoint"> & { readonly name: string },
    value: unknown,
  ): void {
    for (const asked of [value].flat()) {
      const id = isObject(asked) ? asked["id"] : undefined;
      if (typeof id !== "string" || this.#asked.has(id)) continue;
      this.#asked.set(id, [...(ns === "" ? [] : ns.split("|")), `${name}:${task}`]);
    }
  }
}
