import type { ThreadSystem } from "../../actors/thread-system.ts";
import type { Logger } from "../ports/logger.ts";
import type { UnendedRuns } from "../ports/unended-runs.ts";

export interface UnendedRunRepairDeps {
  readonly unended: UnendedRuns;
  readonly system: Pick<ThreadSystem, "endUnendedRun">;
  readonly logger: Logger;
}

/** Ends, in the background, the runs that stops of older versions have left without an end. Once done, no later start has to look. */
export class UnendedRunRepair {
  readonly #deps: UnendedRunRepairDeps;
  readonly #stop = new AbortController();
  #working: Promise<void> = Promise.resolve();

  constructor(deps: UnendedRunRepairDeps) {
    this.#deps = deps;
  }

  start(): void {
    if (!this.#deps.unended.areNone) this.#working = this.#pass();
  }

  /** Resolves once nothing of it is under way. */
  stop(): Promise<void> {
    this.#stop.abort();
    return this.#working;
  }

  async #pass(): Promise<void> {
    const { unended, system, logger } = this.#deps;
    const { signal } = this.#stop;
    const counts: { [end: string]: number } = {};
    const count = (end: string) => void (counts[end] = (counts[end] ?? 0) + 1);
    try {
      for await (const found of unended.find(signal)) {
        const end = await system.endUnendedRun(found).catch((): "failed" => "failed");
        if (end !== undefined) count(end);
      }
      if (counts["failed"] === undefined) await unended.noteNone();
    } catch (cause) {
      logger.warn("runs without an end could not be looked for; the next start does", {
        error: String(cause),
      });
    }
    if (Object.keys(counts).length === 0) return;
    logger.warn("runs that a stop of an older version had left without an end were ended", counts);
  }
}
