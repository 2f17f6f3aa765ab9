/** A batch of runs that was asked for; each of its runs carries a name of its own. */
export interface Batch {
  readonly names: readonly string[];
  state: "asked" | "acknowledged" | "refused";
}

/** Batches are admitted whole, or not at all. */
export class Batches {
  readonly #all: Batch[] = [];
  /** Name -> the run that was stored under it. */
  readonly #runs = new Map<string, string>();

  asked(names: readonly string[]): Batch {
    const batch: Batch = { names, state: "asked" };
    this.#all.push(batch);
    return batch;
  }

  stored(name: unknown, run: string): void {
    if (typeof name === "string") this.#runs.set(name, run);
  }

  /** Runs that were stored of batches that were refused. */
  *refused(): Generator<string> {
    for (const { names, state } of this.#all) {
      if (state !== "refused") continue;
      for (const name of names) {
        const run = this.#runs.get(name);
        if (run !== undefined) yield run;
      }
    }
  }
}
