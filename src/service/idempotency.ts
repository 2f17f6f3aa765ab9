import { ServiceError } from "../model/errors.ts";
import { digest } from "../model/ids.ts";
import type { RunRecord } from "../model/run.ts";
import type { Clock } from "../ports/clock.ts";
import type { Journal, Once } from "../ports/journal.ts";
import { Exclusive } from "./keyed-mutex.ts";

/** Milliseconds for which a request is known when it comes again. */
export const REPEATS = 86_400_000;

/** What its client names a request by, so that it may send it again when the answer was lost. */
export interface RequestKey {
  readonly key: string;
  /** All that the request says: another one under the same key is refused. */
  readonly says: string;
  /** It is known for as long as it is stored: after a day, too. */
  readonly lasting?: true;
}

/** What is stored with the run that a request starts. */
export type Mark = (run: string) => Once;

/** Sees to it that a request is carried out once, however often it comes. */
export class Repeats {
  readonly #journal: Journal;
  readonly #clock: Clock;
  /** Of a request under way the same waits for what becomes of it. */
  readonly #exclusive = new Exclusive();

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
    request: RequestKey,
    start: (mark: Mark) => Promise<RunRecord>,
  ): Promise<RunRecord> {
    const name = digest(request.key);
    return this.#exclusive.run(`${tenant}/${name}`, () => this.#find(tenant, name, request, start));
  }

  async #find(
    tenant: string,
    name: string,
    { says, lasting }: RequestKey,
    start: (mark: Mark) => Promise<RunRecord>,
  ): Promise<RunRecord> {
    const done = await this.#journal.once(tenant, name);
    const at = this.#clock.now();
    const said = digest(says);
    if (done === undefined || (lasting !== true && done.at <= at - REPEATS))
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
