import type * as Runnables from "@langchain/core/runnables";
import type { Runnable, RunnableConfig } from "@langchain/core/runnables";

/** What a runnable does with what it is given. */
export type Step = (value: unknown, options: RunnableConfig) => unknown;

/** Makes a function a runnable, with nothing around it: it is given the configuration as its caller has it. */
export type MakeRunnable = (name: string, step: Step) => Runnable;

/** All that it makes are of one class: calls of many would be slow. */
export function runnableMaker(runnables: typeof Runnables): MakeRunnable {
  class StepRunnable extends runnables.Runnable {
    lc_namespace = ["heddle"];
    override lc_serializable = false;
    readonly #step: Step;

    constructor(name: string, step: Step) {
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
