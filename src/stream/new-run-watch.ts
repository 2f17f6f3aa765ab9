import type { RunRecord } from "../model/run.ts";

export interface RunListener {
  /** Called when a run has begun, and when the watch has ended. */
  runsChanged(): void;
}

/**
 * Notifies the readers of a thread of each run that begins, without loading the thread. The registry creates it for the first reader of the
 * thread, and removes it when the last reader leaves.
 */
export class NewRunWatch {
  readonly #onEmpty: () => void;
  readonly #watchers = new Set<RunListener>();
  #last: RunRecord | undefined;
  #version = 0;
  #broken = false;
  #over = false;

  /** `running`: the thread's run in progress, if any. `onEmpty`: called when the last reader has left. */
  constructor(running: RunRecord | undefined, onEmpty: () => void) {
    this.#last = running;
    this.#onEmpty = onEmpty;
  }

  /** The run that began last. Undefined if no run was in progress when the watch was created and none has begun since. */
  get last(): RunRecord | undefined {
    return this.#last;
  }

  /** Increases by one with each run that begins. */
  get version(): number {
    return this.#version;
  }

  get broken(): boolean {
    return this.#broken;
  }

  /** True when no run will begin any more, because the thread was deleted. */
  get over(): boolean {
    return this.#over;
  }

  join(watcher: RunListener): void {
    this.#watchers.add(watcher);
  }

  leave(watcher: RunListener): void {
    if (this.#watchers.delete(watcher) && this.#watchers.size === 0 && !this.#broken && !this.#over)
      this.#onEmpty();
  }

  began(run: RunRecord): void {
    // A further attempt of the run that began last does not count as a new run.
    if (run.run_id === this.#last?.run_id) return;
    this.#last = run;
    this.#version++;
    this.#notify();
  }

  /** Ends the watch. Called when the thread was deleted. */
  end(): void {
    this.#over = true;
    this.#notify();
  }

  /** Ends the watch early, because the server stops. */
  break(): void {
    this.#broken = true;
    this.#notify();
  }

  #notify(): void {
    for (const watcher of this.#watchers) watcher.runsChanged();
  }
}
