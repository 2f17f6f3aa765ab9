import type { ThreadSystem } from "../../actors/thread-system-interface.ts";
import type { Logger } from "../ports/logger.ts";
import type { LostRunEnds } from "../ports/lost-run-ends.ts";

export interface LostRunEndRepairDeps {
  readonly lostRunEnds: LostRunEnds;
  readonly system: Pick<ThreadSystem, "restoreRunEnd">;
  readonly logger: Logger;
}

/**
 * Ends runs that have no end in storage: an older version of Heddle was shut down while they ran. The repair works in the background. When
 * it has searched all threads and has ended all such runs, later starts of the server do not search again.
 */
export class LostRunEndRepair {
  readonly #deps: LostRunEndRepairDeps;
  readonly #stop = new AbortController();
  #working: Promise<void> = Promise.resolve();

  constructor(deps: LostRunEndRepairDeps) {
    this.#deps = deps;
  }

  start(): void {
    if (!this.#deps.lostRunEnds.areNone) this.#working = this.#pass();
  }

  /** Stops the repair. Resolves when the step in progress is done. */
  stop(): Promise<void> {
    this.#stop.abort();
    return this.#working;
  }

  async #pass(): Promise<void> {
    const { lostRunEnds, system, logger } = this.#deps;
    const { signal } = this.#stop;
    const counts: { [end: string]: number } = {};
    const count = (end: string) => void (counts[end] = (counts[end] ?? 0) + 1);
    try {
      for await (const found of lostRunEnds.find(signal)) {
        const end = await system.restoreRunEnd(found).catch((): "failed" => "failed");
        if (end !== undefined) count(end);
      }
      if (counts["failed"] === undefined) await lostRunEnds.noteNone();
    } catch (cause) {
      logger.warn("runs without an end could not be read; the next start retries", {
        error: String(cause),
      });
    }
    if (Object.keys(counts).length === 0) return;
    logger.warn("runs that a stop of an older version had left without an end were ended", counts);
  }
}
