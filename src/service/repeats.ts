import { ServiceError } from "../model/errors.ts";
import { digest } from "../model/ids.ts";
import type { RunRecord } from "../model/run.ts";
import type { Clock } from "../ports/clock.ts";
import type { Journal, Once } from "../ports/journal.ts";

/** Milliseconds for which a request is known when it comes again. */
export const REPEATS = 86_400_000;

/** What its client names a request by, so that it may send it again when the answer was lost. */
export interface RequestKey {
  readonly key: string;
  /** All that the request says: another one under the same key is refused. */
  readonly says: string;
}

/** What is stored with the run that a request starts. */
export type Mark = (run: string) => Once;

/** Sees to it that a request is carried out once, however often it comes. */
export class Repeats {
  readonly #journal: Journal;
  readonly #clock: Clock;
  /** Requests under way, by name: one that comes meanwhile waits for what becomes of it. */
  readonly #under = new Map<string, Promise<unknown>>();

  constructor({ journal, clock }: { readonly journal: Journal; readonly clock: Clock }) {
    this.#journal = journal;
    this.#clock = clock;
  }

  /**
   * Starts the run, or finds the one that the request has started.
   * @throws ServiceError `request.reused` (another request has this key), `request.gone` (its run is not there any more)
   */
  async once(
    tenant: string,
    { key, says }: RequestKey,
    start: (mark: Mark) => Promise<RunRecord>,
  ): Promise<RunRecord> {
    const name = digest(key);
    const place = `${tenant}/${name}`;
    for (let other = this.#under.get(place); other !== undefined; other = this.#under.get(place)) await other;
    const work = this.#find(tenant, name, digest(says), start);
    // Who waits only wants to know that it is over.
    const over = work.then(
      () => undefined,
      () => undefined,
    );
    this.#under.set(place, over);
    try {
      return await work;
    } finally {
      this.#under.delete(place);
    }
  }

  async #find(
    tenant: string,
    name: string,
    said: string,
    start: (mark: Mark) => Promise<RunRecord>,
  ): Promise<RunRecord> {
    const done = await this.#journal.once(tenant, name);
    const at = this.#clock.now();
    if (done === undefined || done.at <= at - REPEATS)
      return start((run) => ({ name, digest: said, run, at }));
    if (done.digest !== said) {
      const message = "This idempotency key was used for another request: take a new key for a new request";
      throw new ServiceError("request.reused", message);
    }
    const run = await this.#journal.run({ tenant, thread: done.thread }, done.run);
    if (run !== undefined) return run;
    const message = `The run ${done.run} of this idempotency key is not there any more: it was deleted, or was to leave nothing`;
    throw new ServiceError("request.gone", message);
  }
}
