import { type ServiceError, withCauses } from "../model/errors.ts";
import { diskFullError, isDiskFull } from "./abstract-level-store.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/logger.ts";

/**
 * An outage: the time from a failed write until a write is stored again. Only one line is logged for its start, one for
 * its end, and one for each change of the cause, however long it lasts and however many writes are refused.
 */
export class WriteOutage {
  #error: ServiceError;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #since: number;
  #cause: string;
  #refused: number;

  /** `refused`: the number of writes that failed together with the first one. */
  constructor(error: ServiceError, refused: number, { clock, logger }: { clock: Clock; logger: Logger }) {
    this.#error = error;
    this.#clock = clock;
    this.#logger = logger;
    this.#since = clock.mono();
    this.#cause = innermostMessage(error);
    this.#refused = refused;
    logger.error("a write to the storage failed; writes are refused until it stores one again", {
      error: withCauses(error),
    });
  }

  /** The error with which every write fails during the outage. */
  get error(): ServiceError {
    return this.#error;
  }

  /** Counts a refused write. */
  refused(): void {
    this.#refused++;
  }

  /**
   * Records that the outage continues: the storage could not be opened again, or did not store the test write. A new
   * cause is logged.
   */
  goesOn(cause: unknown): void {
    const message = innermostMessage(cause);
    if (message === this.#cause) return;
    this.#cause = message;
    if (isDiskFull(cause)) this.#error = diskFullError(cause);
    this.#logger.warn("the storage is still not available", { error: withCauses(cause) });
  }

  /** Called when a write was stored again. Logs the end of the outage. */
  ended(): void {
    const seconds = Math.round((this.#clock.mono() - this.#since) / 100) / 10;
    this.#logger.info("the storage stores writes again", { seconds, refused: this.#refused });
  }
}

/** The message of the innermost cause. */
function innermostMessage(error: unknown): string {
  let one = error;
  while (one instanceof Error && one.cause !== undefined) one = one.cause;
  return one instanceof Error ? one.message : String(one);
}
