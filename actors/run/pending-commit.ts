import type { NewCheckpoint, TaskWrites } from "../../src/model/checkpoint.ts";
import { Few } from "../../src/model/small-map.ts";
import type { Emission } from "../../src/ports/engine.ts";
import { joinChanges } from "../../src/graph/superstep.ts";

/** What the graphs of an attempt leave to be stored, until an append takes it along. */
export class Staged {
  emissions: Emission[] = [];
  /** Of a graph only the latest checkpoint is stored, with all that led to it. */
  readonly #merge: boolean;
  #checkpoints: NewCheckpoint[] = [];
  readonly #writes = new Few<string, TaskWrites>();
  /** Checkpoints that are in later ones, and are never stored: nor is what tasks leave there. */
  #joined: Set<string> | undefined;

  constructor(merge: boolean) {
    this.#merge = merge;
  }

  get empty(): boolean {
    const held = this.#merge || (this.#checkpoints.length === 0 && this.#writes.size === 0);
    return held && this.emissions.length === 0;
  }

  put(writes: TaskWrites): void {
    if (this.#joined?.has(writes.checkpoint)) return;
    this.#writes.set(`${writes.checkpoint} ${writes.task}`, writes);
  }

  /** The step before these is over; where it is `closed`, what its tasks left is in them, and what subgraphs did there. */
  take(ns: string, checkpoints: readonly NewCheckpoint[], closed: boolean): void {
    if (checkpoints.length === 0) return;
    if (!closed) this.#forget((other) => other === ns);
    else if (ns === "") this.#writes.clear();
    else this.#forget((other) => isWithin(other, ns));
    if (!this.#merge) this.#checkpoints.push(...checkpoints);
    else for (const made of checkpoints) this.#replace(made);
  }

  #forget(isIt: (ns: string) => boolean): void {
    for (const [key, { ns }] of this.#writes) if (isIt(ns)) this.#writes.delete(key);
  }

  #replace(made: NewCheckpoint): void {
    const place = this.#checkpoints.findIndex(({ ns }) => ns === made.ns);
    const before = this.#checkpoints[place];
    if (before === undefined) {
      this.#checkpoints.push(made);
      return;
    }
    const { id, parent, changes } = before;
    (this.#joined ??= new Set()).add(id);
    this.#checkpoints[place] = { ...made, parent, changes: joinChanges(changes, made.changes) };
  }

  /** The graph at `ns` has come to its end: nothing of it, and of those below, is to be stored. */
  drop(ns: string): void {
    this.#checkpoints = this.#checkpoints.filter((made) => !isWithin(made.ns, ns));
    this.#forget((other) => isWithin(other, ns));
  }

  clear(): void {
    this.emissions = [];
    this.#checkpoints = [];
    this.#writes.clear();
  }

  /** Hands over everything; or the events alone, which then carry the states that they show. */
  hand(eventsAlone: boolean) {
    const emissions = this.#merge ? this.emissions.map(inline) : this.emissions;
    this.emissions = [];
    if (eventsAlone) return { checkpoints: [], writes: [], emissions };
    const checkpoints = this.#checkpoints;
    const writes = this.#writes.size === 0 ? [] : [...this.#writes.values()];
    this.#checkpoints = [];
    this.#writes.clear();
    return { checkpoints, writes, emissions };
  }
}

function isWithin(ns: string, above: string): boolean {
  return ns === above || ns.startsWith(`${above}|`);
}

/** The checkpoint that the fact names is not stored: its state goes with it. */
function inline({ fact, values, head }: Emission): Emission {
  if (values === undefined || (fact.t !== "checkpoint" && fact.t !== "interrupt")) return { fact };
  if (head === undefined) return { fact: { ...fact, inline: { values } }, values };
  return { fact: { ...fact, inline: { values, head } }, values, head };
}
