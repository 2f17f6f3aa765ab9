import type * as Runnables from "@langchain/core/runnables";
import type { Runnable, RunnableConfig } from "@langchain/core/runnables";

/** A function that a runnable calls with its input. */
export type RunnableFunction = (value: unknown, options: RunnableConfig) => unknown;

/** Creates a runnable that calls a function directly: without tracing, and with the configuration with which the runnable is invoked. */
export type MakeRunnable = (name: string, step: RunnableFunction) => Runnable;

/**
 * Returns a {@link MakeRunnable}. All runnables that it makes have the same class, because V8 is slow to call a method that many classes
 * implement.
 */
export function createRunnableMaker(runnables: typeof Runnables): MakeRunnable {
  class StepRunnable extends runnables.Runnable {
    lc_namespace = ["heddle"];
    override lc_serializable = false;
    readonly #step: RunnableFunction;

    constructor(name: string, step: RunnableFunction) {
      super();
      this.name = name;
      this.#step = step;
    }

    override async invoke(input: unknown, options: RunnableConfig = {}): Promise<unknown> {
      return this.#step(input, options);
    }
  }
  return (name, step) => new StepRunnable(name, step);
}
