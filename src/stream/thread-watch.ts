import type { RunRecord } from "../model/run.ts";

/** Someone who is told of the runs that begin. */
export interface Watcher {
  /** A run has begun, or the watch is broken off. */
  told(): void;
}

/**
 * Where those who read a thread's runs hear of each that begins: no actor is asked, and none waked. Made for the first of
 * them, gone with the last.
 */
export class Watch {
  readonly #onEmpty: () => void;
  readonly #watchers = new Set<Watcher>();
  #last: RunRecord | undefined;
  #version = 0;
  #broken = false;
  #over = false;

  /** `running`: the thread's run that is in progress. */
  constructor(running: RunRecord | undefined, onEmpty: () => void) {
    this.#last = running;
    this.#onEmpty = onEmpty;
  }

  /** The run that began last, of those that are known here. */
  get last(): RunRecord | undefined {
    return this.#last;
  }

  /** Grows by one with each run that begins. */
  get version(): number {
    return this.#version;
  }

  get broken(): boolean {
    return this.#broken;
  }

  /** No run will begin any more. */
  get over(): boolean {
    return this.#over;
  }

  join(watcher: Watcher): void {
    this.#watchers.add(watcher);
  }

  leave(watcher: Watcher): void {
    if (this.#watchers.delete(watcher) && this.#watchers.size === 0 && !this.#broken && !this.#over)
      this.#onEmpty();
  }

  began(run: RunRecord): void {
    // Another attempt: the same events go on.
    if (run.run_id === this.#last?.run_id) return;
    this.#last = run;
    this.#version++;
    this.#tell();
  }

  /** The thread is deleted. */
  end(): void {
    this.#over = true;
    this.#tell();
  }

  /** The server stops. */
  break(): void {
    this.#broken = true;
    this.#tell();
  }

  #tell(): void {
    for (const watcher of this.#watchers) watcher.told();
  }
}
