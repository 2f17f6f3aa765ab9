import { ServiceError } from "../model/errors.ts";
import type { Clock } from "../ports/clock.ts";
import { MAX_PEER_RETRY_MS, PeerLost, UNRESPONSIVE_MS } from "../ports/peers.ts";
import type { Scheduler } from "../ports/scheduler.ts";

const RETRY_PAUSE_MS = 50;

/**
 * Decides when to send a request to an unreachable process again, and when to give up. The caller sends the request with
 * `Peers.request` each time, so each attempt goes to the process that has the shard by then.
 */
export class PeerRetry {
  readonly #clock: Clock;
  readonly #scheduler: Scheduler;
  #since: number | undefined;

  constructor({ clock, scheduler }: { readonly clock: Clock; readonly scheduler: Scheduler }) {
    this.#clock = clock;
    this.#scheduler = scheduler;
  }

  /** Resets the waiting time. MUST be called after each response, so that a later failure may wait for the full time again. */
  renew(): void {
    this.#since = undefined;
  }

  /**
   * Waits before the next attempt. `cause`: the error of the last attempt. `isRepeatable`: whether the request may be carried out twice.
   * @throws ServiceError `storage.unavailable` after {@link MAX_PEER_RETRY_MS}, if the process hangs, or if the request may have been carried out
   * and is not repeatable; `cause` itself if it is not a {@link PeerLost}
   */
  async wait(cause: unknown, isRepeatable: boolean): Promise<void> {
    if (!(cause instanceof PeerLost)) throw cause;
    const isOutcomeUnknown = cause.wasSent && !isRepeatable;
    if (isOutcomeUnknown || cause.isUnresponsive) {
      // If the outcome is unknown, another attempt could carry the request out twice. If the process hangs, another attempt would wait for it
      // again. If another process takes the shard over, the client's next request reaches that one.
      const reason = cause.isUnresponsive
        ? `has not responded for ${UNRESPONSIVE_MS / 1_000} seconds`
        : "has ended";
      const outcome = isOutcomeUnknown ? "; whether the request was carried out is not known" : "";
      const message = `The process that has this data ${reason}${outcome}`;
      throw new ServiceError("storage.unavailable", message, { cause });
    }
    const now = this.#clock.mono();
    this.#since ??= now;
    if (now - this.#since >= MAX_PEER_RETRY_MS) {
      const message = "The process that has this data does not answer; try again soon";
      throw new ServiceError("storage.unavailable", message, { cause });
    }
    await new Promise<void>((resolve) => this.#scheduler.after(RETRY_PAUSE_MS, resolve, true));
  }
}

/**
 * Calls `ask` until it succeeds, but calls it again only after a {@link PeerLost}, and for at most {@link MAX_PEER_RETRY_MS} after the
 * first failure. `isRepeatable`: whether the request may be carried out twice. If false, a request that the process may have received is
 * not sent again. Rejects with the errors of {@link PeerRetry.wait}.
 */
export async function callWithRetry<T>(
  deps: ConstructorParameters<typeof PeerRetry>[0],
  isRepeatable: boolean,
  ask: () => Promise<T>,
): Promise<T> {
  const retry = new PeerRetry(deps);
  for (;;) {
    try {
      return await ask();
    } catch (cause) {
      await retry.wait(cause, isRepeatable);
    }
  }
}
