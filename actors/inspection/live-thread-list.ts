import type { LiveThreadSummary, LiveThreadList, InspectedStateValue } from "../../src/ports/inspector.ts";
import type { Permits } from "../../src/model/permitted-resources.ts";
import type { LiveThread } from "../thread/live-thread.ts";

/** The list of threads in memory, for the dashboard and the API. */
export class InMemoryThreadList implements LiveThreadList {
  readonly #threads: ReadonlyMap<string, LiveThread>;

  constructor(liveThreads: ReadonlyMap<string, LiveThread>) {
    this.#threads = liveThreads;
  }

  /** Busy threads first, then idle ones; within each group, the thread that was loaded last comes first. */
  list(tenant: string, limit: number, permits?: Permits): readonly LiveThreadSummary[] {
    const [busy, rest]: readonly [LiveThreadSummary[], LiveThreadSummary[]] = [[], []];
    for (const { key, runs, actor, record } of this.#threads.values()) {
      if (key.tenant !== tenant || actor === undefined) continue;
      if (permits !== undefined && !permits(record.metadata)) continue;
      const { value } = actor.getSnapshot() as { readonly value: InspectedStateValue };
      (runs.size > 0 ? busy : rest).push({ thread: key.thread, value, runs: runs.size });
    }
    return [...busy.reverse(), ...rest.reverse()].slice(0, limit);
  }

  threadOf(tenant: string, run: string): string | undefined {
    for (const { key, runs } of this.#threads.values()) {
      if (key.tenant === tenant && runs.has(run)) return key.thread;
    }
    return undefined;
  }
}
