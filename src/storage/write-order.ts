import { andThenWith, type Eventually } from "../ports/eventually.ts";

/**
 * Keeps the order of writes that read stored data before they are submitted. If the store reads asynchronously, later writes of the same
 * records wait until the earlier write is submitted, so that the data that it has read does not change in between. Usually the store reads
 * synchronously, and nothing waits. Records are identified by their keys, or a prefix of their keys.
 */
export class WriteOrder {
  /** The last unfinished write of each record. The promises never reject. */
  readonly #last = new Map<string, Promise<void>>();

  /**
   * Calls `write` when the earlier writes of all these records have ended: synchronously if none is in progress. Returns the result of
   * `write`, which MUST return, or resolve, when its operations are submitted. `write` MUST NOT wait until they are stored.
   */
  run<T>(records: readonly string[], write: () => Eventually<T>): Eventually<T> {
    return this.runWith(records, undefined, write);
  }

  /** Like {@link run}, with an argument for `write`; see `andThenWith` in `ports/eventually.ts`. */
  runWith<C, T>(
    records: readonly string[],
    context: C,
    write: (_: unknown, context: C) => Eventually<T>,
  ): Eventually<T> {
    const before = this.#last.size === 0 ? undefined : this.#before(records);
    const result = andThenWith(before, context, write);
    if (result instanceof Promise) this.hold(records, result);
    return result;
  }

  /** Makes later writes of these records wait until the promise `until` has settled. */
  hold(records: readonly string[], until: Promise<unknown>): void {
    const before = this.#before(records);
    const settled = until.then(ignore, ignore);
    const over = before === undefined ? settled : Promise.all([before, settled]).then(ignore);
    for (const record of records) this.#last.set(record, over);
    void over.then(() => {
      for (const record of records) if (this.#last.get(record) === over) this.#last.delete(record);
    });
  }

  #before(records: readonly string[]): Promise<unknown> | undefined {
    const found = records.flatMap((record) => this.#last.get(record) ?? []);
    return found.length === 0 ? undefined : Promise.all(found);
  }
}

const ignore = (): void => undefined;
