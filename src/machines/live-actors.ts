import type { ActorResult, RunningActor } from "./machine-driver.ts";

interface RunActors {
  readonly actors: Map<string, RunningActor>;
  /** One callback for each task that waits for an actor. Calling it ends the task; the actor continues. */
  readonly waiting: Set<() => void>;
}

/**
 * The running promise actors of each run. A superstep ends only when all of its tasks have ended, but a machine has to
 * take the result of the first actor while others are still working. So when one actor ends, the tasks of the others
 * end without a result, and tasks of the next superstep wait for the same actors again.
 */
export class LiveActors {
  readonly #runs = new Map<string, RunActors>();

  /**
   * Waits for the result of an actor, and starts the actor if it is not running. Resolves with undefined if another
   * actor ends first, or if `signal` aborts, which stops the actor.
   */
  next(
    run: string,
    key: string,
    start: () => RunningActor,
    signal: AbortSignal,
  ): Promise<ActorResult | undefined> {
    const { actors, waiting } = this.#of(run);
    const live = actors.get(key) ?? start();
    actors.set(key, live);
    return new Promise((resolve) => {
      let isOver = false;
      const end = (result: ActorResult | undefined) => {
        if (isOver) return;
        isOver = true;
        waiting.delete(leave);
        signal.removeEventListener("abort", abort);
        resolve(result);
      };
      const leave = () => end(undefined);
      const abort = () => {
        this.#remove(run, key);
        live.stop();
        leave();
      };
      waiting.add(leave);
      signal.addEventListener("abort", abort);
      void live.result.then((result) => {
        if (isOver) return;
        this.#remove(run, key);
        end(result);
        this.release(run);
      });
    });
  }

  /** Ends the tasks that wait for actors of a run. The actors continue. */
  release(run: string): void {
    for (const leave of this.#runs.get(run)?.waiting ?? []) leave();
  }

  /** Stops all actors of a run except those with these keys. */
  retain(run: string, keys: ReadonlySet<string>): void {
    for (const [key, live] of this.#runs.get(run)?.actors ?? []) {
      if (keys.has(key)) continue;
      this.#remove(run, key);
      live.stop();
    }
  }

  #of(run: string): RunActors {
    const known = this.#runs.get(run) ?? { actors: new Map(), waiting: new Set() };
    this.#runs.set(run, known);
    return known;
  }

  #remove(run: string, key: string): void {
    const actors = this.#runs.get(run)?.actors;
    actors?.delete(key);
    if (actors?.size === 0) this.#runs.delete(run);
  }
}
