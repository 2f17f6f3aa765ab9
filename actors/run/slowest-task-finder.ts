import type { Fact } from "../../src/model/run-event.ts";
import type { SlowestTask } from "../../src/model/run.ts";
import { SmallMap } from "../../src/model/small-map.ts";

/** Facts that report the start or the end of a task. */
type TaskFact = Extract<Fact, { t: "task" | "result" }>;

export const isTaskFact = (fact: Fact): fact is TaskFact => fact.t === "task" || fact.t === "result";

/**
 * Finds the task of a run that took longest. A task that runs a subgraph is not compared with others, because its time
 * is that of the subgraph's tasks, which are compared.
 */
export class SlowestTaskFinder {
  /** The start of each task in progress that runs no subgraph, by task id. Epoch milliseconds. */
  readonly #begun = new SmallMap<string, { readonly name: string; readonly at: number }>();
  #slowest: SlowestTask | null;
  /** The number of tasks compared. A single task is not reported: it would only repeat the duration of the run. */
  #compared: number;
  #hasChanged = false;

  /** Starts from the slowest task of the run's earlier attempts; null: it is not known. */
  constructor(earlier: SlowestTask | null) {
    this.#slowest = earlier;
    this.#compared = earlier === null ? 0 : 2;
  }

  add(fact: TaskFact): void {
    if (fact.again === true) {
      this.#begun.delete(fact.id);
      return;
    }
    if (fact.t === "result") return this.#end(fact.id, fact.at);
    const { id, name, ns, at } = fact;
    // A namespace ends with the id of the task that runs the subgraph. That task is not compared.
    if (ns !== "") this.#begun.delete(ns.slice(ns.lastIndexOf(":") + 1));
    if (!this.#begun.has(id)) this.#begun.set(id, { name, at });
  }

  /** Ends the tasks that are still in progress, because the run has ended. `at`: epoch milliseconds. */
  endAll(at: number): void {
    for (const id of this.#begun.keys()) this.#end(id, at);
  }

  /** True if the value of {@link found} has changed since the last call of this function. */
  takeChange(): boolean {
    const hasChanged = this.#hasChanged && this.#compared > 1;
    if (hasChanged) this.#hasChanged = false;
    return hasChanged;
  }

  /** The slowest task; null: fewer than two tasks have ended, or no task has taken a millisecond. */
  get found(): SlowestTask | null {
    return this.#compared > 1 ? this.#slowest : null;
  }

  #end(id: string, at: number): void {
    const begun = this.#begun.get(id);
    if (begun === undefined) return;
    this.#begun.delete(id);
    this.#compared++;
    const duration_ms = at - begun.at;
    if (duration_ms <= (this.#slowest?.duration_ms ?? 0)) return;
    this.#slowest = { name: begun.name, task_id: id, duration_ms };
    this.#hasChanged = true;
  }
}
