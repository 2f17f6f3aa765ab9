import type { Runnable, RunnableConfig } from "@langchain/core/runnables";
import type { Library } from "./library.ts";

/** What a runnable does with what it is given. */
export type Step = (value: unknown, options: RunnableConfig) => unknown;

type Maker = (name: string, step: Step) => Runnable;

/** One class for each library: calls of many would be slow. */
const makers = new WeakMap<Library, Maker>();

/** A function as a runnable, with nothing around it: it is given the configuration as its caller has it. */
export function runnableOf(library: Library, name: string, step: Step): Runnable {
  const make = makers.get(library) ?? makerOf(library);
  makers.set(library, make);
  return make(name, step);
}

function makerOf({ runnables }: Library): Maker {
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
