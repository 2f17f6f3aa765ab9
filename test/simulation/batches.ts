/** A requested batch of runs. Each of its runs has a unique name. */
export interface Batch {
  readonly names: readonly string[];
  state: "asked" | "acknowledged" | "refused";
}

/** Checks that batches are admitted completely or not at all. */
export class Batches {
  readonly #all: Batch[] = [];
  /** Name -> the run stored under it. */
  readonly #runs = new Map<string, string>();

  asked(names: readonly string[]): Batch {
    const batch: Batch = { names, state: "asked" };
    this.#all.push(batch);
    return batch;
  }

  stored(name: unknown, run: string): void {
    if (typeof name === "string") this.#runs.set(name, run);
  }

  /** Runs of refused batches that were stored nevertheless. */
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
