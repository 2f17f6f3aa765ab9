import type { ServiceError } from "../src/model/errors.ts";
import { isTerminal, type RunRecord } from "../src/model/run.ts";
import type { Eventually } from "../src/ports/eventually.ts";
import type { RunEnd } from "./thread-system-interface.ts";
import { ReleasingMap } from "../src/model/releasing-map.ts";

interface Waiter {
  readonly resolve: (end: RunEnd) => void;
  readonly reject: (cause: unknown) => void;
}

/** The same as `Promise.withResolvers`, which Node 20 does not have. */
function withResolvers<T>() {
  let resolve: (value: T) => void = () => undefined;
  let reject: (cause: unknown) => void = () => undefined;
  const promise = new Promise<T>((...given) => ([resolve, reject] = given));
  return { promise, resolve, reject };
}

export class RunEndCallbacks {
  readonly #byRun = new ReleasingMap<string, Waiter[]>();
  /** The error with which all further waits reject; undefined while runs end in this process. */
  #closed: ServiceError | undefined;

  /** Resolves with the end of a run. Rejects when the storage fails before that; see {@link fail}. */
  waitForEnd(run: string): Promise<RunEnd> {
    return new Promise((resolve, reject) => {
      this.#add(run, { resolve, reject });
    });
  }

  /** Waits for the end of a run that may have ended already. `read` reads the run's record. */
  async waitUnlessEnded(run: string, read: () => Eventually<RunRecord | undefined>): Promise<RunEnd> {
    const { promise: ended, ...waiter } = withResolvers<RunEnd>();
    // Added before the read: an end that is stored during the read would be missed otherwise.
    this.#add(run, waiter);
    // The promise may reject during the read, before anybody waits for it. This handler keeps Node from reporting an
    // unhandled rejection.
    ended.catch(() => undefined);
    try {
      const record = await read();
      if (record !== undefined && !isTerminal(record.status)) return await ended;
      // If the end was reported during the read, `ended` wins the race. Unlike the record, it includes the final state,
      // which may already be deleted from the storage.
      return await Promise.race([ended, { run: record }]);
    } finally {
      this.#remove(run, waiter);
    }
  }

  #add(run: string, waiter: Waiter): void {
    if (this.#closed !== undefined) return waiter.reject(this.#closed);
    const waiters = this.#byRun.get(run);
    if (waiters === undefined) this.#byRun.set(run, [waiter]);
    else waiters.push(waiter);
  }

  #remove(run: string, waiter: Waiter): void {
    const waiters = this.#byRun.get(run);
    const at = waiters?.indexOf(waiter) ?? -1;
    if (at >= 0) waiters?.splice(at, 1);
    if (waiters?.length === 0) this.#byRun.delete(run);
  }

  notify(run: string, end: RunEnd): void {
    const waiters = this.#byRun.get(run);
    if (waiters === undefined) return;
    this.#byRun.delete(run);
    for (const { resolve } of waiters) resolve(end);
  }

  /** Rejects all waits for the end of a run, because the end is delayed until the storage works again. */
  fail(run: string, cause: unknown): void {
    const waiters = this.#byRun.get(run);
    if (waiters === undefined) return;
    this.#byRun.delete(run);
    for (const { reject } of waiters) reject(cause);
  }

  /** Rejects all waits, and all further ones, because no more runs end in this process. */
  close(cause: ServiceError): void {
    this.#closed = cause;
    for (const run of this.#byRun.keys()) this.fail(run, cause);
  }
}
