import type { ActorResult, RunningActor } from "./machine-driver.ts";

/** Reports the events of clients and timers that arrive while promise actors run. */
interface Interruptions {
  /** Returns whether the machine can take one of the waiting events. */
  isDue(): boolean;
  /** Calls `arrived` each time the waiting events may have changed, until the returned function is called. */
  watch(arrived: () => void): () => void;
}

/**
 * A running promise actor. Events that it emits while no task waits for it are collected in `kept`; the next task that waits for it
 * receives them.
 */
interface ActorAtWork extends RunningActor {
  readonly kept: unknown[];
  emit: ((event: unknown) => void) | undefined;
}

interface RunActors {
  readonly actors: Map<string, ActorAtWork>;
  /** A callback for each task that waits for an actor. It ends the task, and the actor continues. */
  readonly waiting: Set<() => void>;
}

interface WaitOptions {
  /** Starts the actor. Called only if the actor is not running yet. */
  start(emit: (event: unknown) => void): RunningActor;
  readonly emit: (event: unknown) => void;
  readonly signal: AbortSignal;
  readonly interruptions?: Interruptions | undefined;
}

/**
 * The running promise actors of each run. A superstep ends only when all of its tasks have ended. So when one actor ends, or the machine
 * can take a waiting event, the tasks of the other actors end without a result. Their actors keep running, and the next superstep waits for
 * them again.
 */
export class RunningPromiseActors {
  readonly #runs = new Map<string, RunActors>();

  /**
   * Waits for an actor, and starts it if it is not running. Resolves with the actor's result. Resolves with undefined if another actor ends
   * first, if the machine can take an event, or if `signal` is aborted, which also stops the actor. Before it resolves, `emit` is called
   * with each event that the actor emits.
   */
  waitFor(
    run: string,
    key: string,
    { start, emit, signal, interruptions }: WaitOptions,
  ): Promise<ActorResult | undefined> {
    // A signal that has already aborted fires no `abort` event, so a listener would not be called.
    if (signal.aborted) return Promise.resolve(undefined);
    const { actors, waiting } = this.#of(run);
    const live = actors.get(key) ?? begun(start);
    actors.set(key, live);
    live.emit = emit;
    for (const event of live.kept.splice(0)) emit(event);
    return new Promise((resolve) => {
      let isOver = false;
      const end = (result: ActorResult | undefined) => {
        if (isOver) return;
        isOver = true;
        live.emit = undefined;
        waiting.delete(leave);
        unwatch?.();
        signal.removeEventListener("abort", abort);
        resolve(result);
      };
      const leave = () => end(undefined);
      const unwatch = interruptions?.watch(() => {
        if (!isOver && interruptions.isDue()) this.endWaits(run);
      });
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
        live.stop();
        end(result);
        this.endWaits(run);
      });
      // The tasks of a superstep do not all begin at the same time, so each task also checks for waiting events when it begins.
      if (interruptions?.isDue() === true) leave();
    });
  }

  /** Ends the tasks that wait for actors of a run. The actors continue. */
  endWaits(run: string): void {
    for (const leave of this.#runs.get(run)?.waiting ?? []) leave();
  }

  /** Stops all actors of a run except those whose key is in `keys`. */
  retain(run: string, keys: ReadonlySet<string>): void {
    for (const [key, live] of this.#runs.get(run)?.actors ?? []) {
      if (keys.has(key)) continue;
      this.#remove(run, key);
      live.stop();
    }
  }

  /** Stops all actors of a run, because the run is over, or because its machine needs none of them any more. */
  stop(run: string): void {
    this.retain(run, NO_KEYS);
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

const NO_KEYS: ReadonlySet<string> = new Set();

function begun(start: WaitOptions["start"]): ActorAtWork {
  const kept: unknown[] = [];
  const made: Pick<ActorAtWork, "emit" | "kept"> = { kept, emit: undefined };
  const running = start((event) => (made.emit === undefined ? kept.push(event) : made.emit(event)));
  return Object.assign(made, running);
}
