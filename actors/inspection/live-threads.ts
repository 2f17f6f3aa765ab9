import type { LiveThread, LiveThreads, ShownValue } from "../../src/ports/inspector.ts";
import type { Cell } from "../thread/live-thread.ts";

/** The list of threads in memory, for the dashboard and the API. */
export class Live implements LiveThreads {
  readonly #cells: ReadonlyMap<string, Cell>;

  constructor(cells: ReadonlyMap<string, Cell>) {
    this.#cells = cells;
  }

  /** Busy threads first; of each kind the one loaded last comes first. */
  list(tenant: string, limit: number): readonly LiveThread[] {
    const [busy, rest]: readonly [LiveThread[], LiveThread[]] = [[], []];
    for (const { key, runs, actor } of this.#cells.values()) {
      if (key.tenant !== tenant || actor === undefined) continue;
      const { value } = actor.getSnapshot() as { readonly value: ShownValue };
      (runs.size > 0 ? busy : rest).push({ thread: key.thread, value, runs: runs.size });
    }
    return [...busy.reverse(), ...rest.reverse()].slice(0, limit);
  }

  threadOf(tenant: string, run: string): string | undefined {
    for (const { key, runs } of this.#cells.values()) {
      if (key.tenant === tenant && runs.has(run)) return key.thread;
    }
    return undefined;
  }
}
