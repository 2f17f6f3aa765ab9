import type { CronOutcome } from "../../model/cron.ts";
import { isTerminal, type RunRecord } from "../../model/run.ts";
import type { CronStorage } from "../../ports/cron-storage.ts";
import type { Logger } from "../../ports/logger.ts";

/**
 * Stores on each cron how its last run ended, because the run itself may be deleted with its thread. If the process crashes between the end
 * of the run and this write, the cron keeps its previous outcome until its next run ends.
 */
export class CronOutcomes {
  readonly #cronStorage: Pick<CronStorage, "change">;
  readonly #logger: Logger;
  readonly #writing = new Set<Promise<void>>();

  constructor(cronStorage: Pick<CronStorage, "change">, logger: Logger) {
    this.#cronStorage = cronStorage;
    this.#logger = logger;
  }

  runEnded(tenant: string, run: RunRecord): void {
    const { origin, run_id, status, error } = run;
    const { cron_id: cron } = run.metadata;
    // The metadata alone do not show that a cron started the run: clients can give their own runs any metadata. They cannot set the origin.
    if (origin !== "cron" || typeof cron !== "string" || !isTerminal(status)) return;
    const last_run: CronOutcome = { run_id, status, error, ended_at: run.ended_at ?? run.updated_at };
    const writing = this.#write(tenant, cron, last_run);
    this.#writing.add(writing);
    void writing.finally(() => this.#writing.delete(writing));
  }

  /** Resolves when all outcomes so far are stored, or their writes have failed. */
  async settled(): Promise<void> {
    await Promise.all(this.#writing);
  }

  async #write(tenant: string, cron: string, last_run: CronOutcome): Promise<void> {
    try {
      await this.#cronStorage.change({ tenant, cron }, (now) => now && { ...now, last_run });
    } catch (cause) {
      this.#logger.debug("the outcome of a cron's run could not be stored", { cron, error: String(cause) });
    }
  }
}
