import type { AddedStepResults, NewCheckpoint, PendingTaskWrites } from "../../src/model/checkpoint.ts";
import { SmallMap } from "../../src/model/small-map.ts";
import type { Emission } from "../../src/ports/engine.ts";
import { combineChanges } from "../../src/graph/superstep.ts";

/** Checkpoints, writes and emissions of an attempt that wait for the next append. */
export class PendingCommit {
  emissions: Emission[] = [];
  /**
   * Ids of queued runs whose events the pending checkpoints have processed. These runs end when the checkpoints are
   * stored.
   */
  taken: string[] = [];
  /** Whether only the latest checkpoint of each graph is stored, with the changes of all checkpoints before it. */
  readonly #merge: boolean;
  #checkpoints: NewCheckpoint[] = [];
  readonly #writes = new SmallMap<string, PendingTaskWrites>();
  /** Step results of tasks that have no other pending writes. */
  readonly #steps = new SmallMap<string, AddedStepResults>();
  /**
   * Ids of checkpoints that were merged into later checkpoints. Neither they nor the task writes that belong to them
   * are ever stored.
   */
  #joined: Set<string> | undefined;

  constructor(merge: boolean) {
    this.#merge = merge;
  }

  get isEmpty(): boolean {
    const isWaiting =
      this.#isHeld || (this.#checkpoints.length === 0 && this.#writes.size === 0 && this.#steps.size === 0);
    return isWaiting && this.emissions.length === 0;
  }

  /** True when checkpoints wait for the end of the run. Checkpoints that end other runs do not wait. */
  get #isHeld(): boolean {
    return this.#merge && this.taken.length === 0;
  }

  addWrites(writes: PendingTaskWrites): void {
    if (this.#joined?.has(writes.checkpoint)) return;
    this.#writes.set(keyOf(writes), writes);
    this.#steps.delete(keyOf(writes));
  }

  /**
   * Adds a step result. `writes`: all pending writes of the task, with the result. They replace earlier writes of the
   * task that still wait for the append; if no earlier writes wait, only the result is stored.
   */
  addStepResult(writes: PendingTaskWrites, step: string, value: unknown): void {
    if (this.#joined?.has(writes.checkpoint)) return;
    const key = keyOf(writes);
    if (this.#writes.has(key)) {
      this.#writes.set(key, writes);
      return;
    }
    const { ns, checkpoint, task } = writes;
    const steps = { ...this.#steps.get(key)?.steps, [step]: value };
    this.#steps.set(key, { ns, checkpoint, task, steps });
  }

  /**
   * Adds the checkpoints of a step of the graph at `ns`, and drops the pending task writes that the step has applied:
   * those of the graph and, with `closed`, those of its subgraphs.
   */
  addCheckpoints(ns: string, checkpoints: readonly NewCheckpoint[], closed: boolean): void {
    if (checkpoints.length === 0) return;
    if (!closed) this.#forget((other) => other === ns);
    else if (ns === "") this.#clearWrites();
    else this.#forget((other) => isWithin(other, ns));
    if (!this.#merge) this.#checkpoints.push(...checkpoints);
    else for (const made of checkpoints) this.#replace(made);
  }

  #forget(isIt: (ns: string) => boolean): void {
    for (const [key, { ns }] of this.#writes) if (isIt(ns)) this.#writes.delete(key);
    for (const [key, { ns }] of this.#steps) if (isIt(ns)) this.#steps.delete(key);
  }

  #clearWrites(): void {
    this.#writes.clear();
    this.#steps.clear();
  }

  #replace(made: NewCheckpoint): void {
    const index = this.#checkpoints.findIndex(({ ns }) => ns === made.ns);
    const before = this.#checkpoints[index];
    if (before === undefined) {
      this.#checkpoints.push(made);
      return;
    }
    const { id, parent, changes } = before;
    (this.#joined ??= new Set()).add(id);
    this.#checkpoints[index] = { ...made, parent, changes: combineChanges(changes, made.changes) };
  }

  /** Drops all pending checkpoints and writes of the graph at `ns`, which has ended, and of its subgraphs. */
  drop(ns: string): void {
    this.#checkpoints = this.#checkpoints.filter((made) => !isWithin(made.ns, ns));
    this.#forget((other) => isWithin(other, ns));
  }

  clear(): void {
    this.emissions = [];
    this.taken = [];
    this.#checkpoints = [];
    this.#clearWrites();
  }

  /**
   * Takes everything that is pending. With `eventsAlone`, takes only the events, unless checkpoints that end queued
   * runs (`taken`) have to be stored too.
   */
  takeAll(eventsAlone: boolean) {
    const emissions = this.#merge ? this.emissions.map(inline) : this.emissions;
    this.emissions = [];
    if (eventsAlone && this.taken.length === 0)
      return { checkpoints: [], writes: [], steps: [], emissions, taken: [] };
    const { taken } = this;
    this.taken = [];
    const checkpoints = this.#checkpoints;
    const writes = this.#writes.size === 0 ? [] : [...this.#writes.values()];
    const steps = this.#steps.size === 0 ? [] : [...this.#steps.values()];
    this.#checkpoints = [];
    this.#clearWrites();
    return { checkpoints, writes, steps, emissions, taken };
  }
}

function keyOf({ checkpoint, task }: Pick<PendingTaskWrites, "checkpoint" | "task">): string {
  return `${checkpoint} ${task}`;
}

function isWithin(ns: string, above: string): boolean {
  return ns === above || ns.startsWith(`${above}|`);
}

/** Copies the state into a fact, because the checkpoint that the fact refers to may never be stored. */
function inline({ fact, values, head }: Emission): Emission {
  if (values === undefined || (fact.t !== "checkpoint" && fact.t !== "interrupt")) return { fact };
  if (head === undefined) return { fact: { ...fact, inline: { values } }, values };
  return { fact: { ...fact, inline: { values, head } }, values, head };
}
