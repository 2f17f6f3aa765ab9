import type { RunEnd } from "./thread-system.ts";
import { ReleasingMap } from "../src/model/releasing-map.ts";

type Waiter = (end: RunEnd) => void;

/** Callbacks to run when a run ends. */
export class RunEndCallbacks {
  readonly #byRun = new ReleasingMap<string, Waiter[]>();

  waitForEnd(run: string): Promise<RunEnd> {
    return new Promise((resolve) => {
      const waiters = this.#byRun.get(run);
      if (waiters === undefined) this.#byRun.set(run, [resolve]);
      else waiters.push(resolve);
    });
  }

  notify(run: string, end: RunEnd): void {
    const waiters = this.#byRun.get(run);
    if (waiters === undefined) return;
    this.#byRun.delete(run);
    for (const resolve of waiters) resolve(end);
  }
}
