import type { RunRecord } from "../model/run.ts";
import type { ThreadKey } from "../model/thread.ts";
import { MAX_PEER_RETRY_MS } from "../ports/peers.ts";
import type { Cancel, Scheduler } from "../ports/scheduler.ts";

/**
 * Milliseconds for which a run goes on after the connection to the process that forwarded its client's request has ended. If the client is
 * still connected, that process sends the request again within this time.
 */
const UNATTENDED_MS = MAX_PEER_RETRY_MS + 2_000;

const nameOf = ({ tenant, thread }: ThreadKey, { run_id }: RunRecord): string =>
  `${tenant}\n${thread}\n${run_id}`;

/**
 * The runs that end with their client's connection, and whose forwarded request was lost: the process that forwarded it may have ended, or
 * only the connection to it.
 */
export class UnattendedRuns {
  readonly #scheduler: Scheduler;
  readonly #cancels = new Map<string, Cancel>();

  constructor(scheduler: Scheduler) {
    this.#scheduler = scheduler;
  }

  /** Called when a request for the run arrives: its client is still there. */
  attended(key: ThreadKey, run: RunRecord): void {
    if (this.#cancels.size === 0) return;
    const name = nameOf(key, run);
    this.#cancels.get(name)?.();
    this.#cancels.delete(name);
  }

  /** Called when the request of a run was lost. Calls `end` after {@link UNATTENDED_MS}, unless the request has been sent again by then. */
  lost(key: ThreadKey, run: RunRecord, end: () => void): void {
    const name = nameOf(key, run);
    this.#cancels.get(name)?.();
    this.#cancels.set(
      name,
      this.#scheduler.after(UNATTENDED_MS, () => {
        this.#cancels.delete(name);
        end();
      }),
    );
  }
}
