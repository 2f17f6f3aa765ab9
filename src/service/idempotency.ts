import { ServiceError } from "../model/errors.ts";
import { sha256Hex } from "../model/ids.ts";
import type { RunRecord } from "../model/run.ts";
import type { Clock } from "../ports/clock.ts";
import type { Journal, IdempotentRequest } from "../ports/journal.ts";
import { KeyedMutex } from "./keyed-mutex.ts";

/** Milliseconds for which an idempotency key is valid. */
export const IDEMPOTENCY_TTL = 86_400_000;

/** An idempotency key. If a client has not received the response to a request, it may send the request again with the same key. */
export interface IdempotencyKey {
  readonly key: string;
  /** The content of the request. A different request under the same key is refused. */
  readonly content: string;
  /** True: the key stays valid as long as it is stored, even after {@link IDEMPOTENCY_TTL}. */
  readonly neverExpires?: true;
}

/**
 * The text that is hashed and stored for the idempotency key of a request to start a run. If the request names no thread, this text selects
 * the shard of the run.
 */
export const startKeyOf = (key: string): string => `request ${key}`;

/** Makes the idempotency record of the started run. The record and the run are stored together. */
export type MakeIdempotencyRecord = (run: string) => IdempotentRequest;

/**
 * Makes sure that a request with an idempotency key starts only one run, however often it is sent while the
 * key is valid.
 */
export class IdempotencyGuard {
  readonly #journal: Journal;
  readonly #clock: Clock;
  /** Makes a repeated request wait while the first request with its key is still in progress. */
  readonly #exclusive = new KeyedMutex();

  constructor({ journal, clock }: { readonly journal: Journal; readonly clock: Clock }) {
    this.#journal = journal;
    this.#clock = clock;
  }

  /**
   * Starts the run, or returns the run that an earlier request with this key has started.
   * @throws ServiceError `request.reused` (another request has this key), `request.gone` (its run does not exist any more)
   */
  async once(
    tenant: string,
    request: IdempotencyKey,
    start: (mark: MakeIdempotencyRecord) => Promise<RunRecord>,
  ): Promise<RunRecord> {
    const name = sha256Hex(request.key);
    return this.#exclusive.run(`${tenant}/${name}`, () => this.#find(tenant, name, request, start));
  }

  async #find(
    tenant: string,
    name: string,
    { content: says, neverExpires: lasting }: IdempotencyKey,
    start: (mark: MakeIdempotencyRecord) => Promise<RunRecord>,
  ): Promise<RunRecord> {
    const done = await this.#journal.once(tenant, name);
    const at = this.#clock.now();
    const contentDigest = sha256Hex(says);
    if (done === undefined || (lasting !== true && done.at <= at - IDEMPOTENCY_TTL))
      return start((run) => ({ name, digest: contentDigest, run, at }));
    if (done.digest !== contentDigest) {
      const message = "This idempotency key was used for another request: take a new key for a new request";
      throw new ServiceError("request.reused", message);
    }
    const run = await this.#journal.run({ tenant, thread: done.thread }, done.run);
    if (run !== undefined) {
      const { taken_by: takenBy } = run.kwargs;
      if (takenBy === undefined) return run;
      // If the run that took the event was rolled back, the effect of the event is undone. The client may then send the event again.
      const isUndone = (await this.#journal.run({ tenant, thread: done.thread }, takenBy)) === undefined;
      return isUndone ? start((again) => ({ name, digest: contentDigest, run: again, at })) : run;
    }
    const message = `The run ${done.run} of this idempotency key is not there any more: it was deleted, or was to leave nothing`;
    throw new ServiceError("request.gone", message);
  }
}
