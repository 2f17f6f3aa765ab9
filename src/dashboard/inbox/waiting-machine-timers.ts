import { fetchThreadValues } from "../api/client.ts";
import type { WaitingThread } from "../api/records.ts";
import { type RunningTimer, readMachineTimers } from "../threads/machine-timers.tsx";
import { isTransient } from "../api-errors.ts";

/** The running timers of waiting machines. They are read once after each change of a thread. */
export class WaitingMachineTimers {
  readonly #onChange: () => void;
  #known = new Map<string, { readonly at: string; readonly timers: readonly RunningTimer[] }>();
  #isReading = false;

  constructor(onChange: () => void) {
    this.#onChange = onChange;
  }

  /** Returns the timer of a thread that fires first; undefined if it has none or they have not been read yet. */
  nextOf({ thread_id: id }: WaitingThread): RunningTimer | undefined {
    return this.#known.get(id)?.timers[0];
  }

  /** Sets the threads whose timers are shown, and reads those that are missing or outdated. */
  async setThreads(threads: readonly WaitingThread[]): Promise<void> {
    if (this.#isReading) return;
    const changed = threads.filter(({ thread_id: id, updated_at: at }) => this.#known.get(id)?.at !== at);
    if (changed.length === 0) return;
    this.#isReading = true;
    try {
      const ids = changed.map(({ thread_id }) => thread_id);
      const found = await fetchThreadValues(ids, { timers: "values.__snapshot__.timers" });
      const timers = new Map(
        found.map(({ thread_id, extracted }) => [thread_id, readMachineTimers(extracted["timers"])]),
      );
      this.#take(threads, changed, timers);
      this.#onChange();
    } catch (cause) {
      // After a temporary error, the next call tries again.
      if (!isTransient(cause)) this.#take(threads, changed, new Map());
    } finally {
      this.#isReading = false;
    }
  }

  /** Stores what was read, and drops threads that are not shown any more. */
  #take(
    threads: readonly WaitingThread[],
    changed: readonly WaitingThread[],
    timers: ReadonlyMap<string, readonly RunningTimer[]>,
  ): void {
    const shown = new Set(threads.map(({ thread_id }) => thread_id));
    const kept = [...this.#known].filter(([id]) => shown.has(id));
    const read = changed.map(
      ({ thread_id: id, updated_at: at }) => [id, { at, timers: timers.get(id) ?? [] }] as const,
    );
    this.#known = new Map([...kept, ...read]);
  }
}
