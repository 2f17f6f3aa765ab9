import { toStorable } from "../model/json.ts";
import type { NodeCall } from "../ports/engine.ts";
import type { NodeIo } from "../ports/node-executor.ts";
import type { Ctx } from "../graph/node-context.ts";

const MAX_KEY_LENGTH = 256;

/** The results of `ctx.step` in one attempt of a task. They are stored by key, so that a replay does not run the steps again. */
export class CtxStepResults {
  readonly #call: NodeCall;
  readonly #io: NodeIo;
  readonly #check: () => void;
  /** The results of this attempt by key, including pending ones, so that the function of a key runs only once. */
  #running: Map<string, Promise<unknown>> | undefined;

  constructor(call: NodeCall, io: NodeIo, check: () => void) {
    this.#call = call;
    this.#io = io;
    this.#check = check;
  }

  has(key: string): boolean {
    return Object.hasOwn(this.#call.steps, key);
  }

  async run(key: string, fn: () => unknown): Promise<unknown> {
    let result = this.#running?.get(key);
    if (result === undefined) {
      result = this.#runFirst(key, fn);
      (this.#running ??= new Map()).set(key, result);
    }
    // Returns a copy: the node may change what it gets, and the stored result must not change.
    return toStorable(await result, "step");
  }

  async #runFirst(key: string, fn: () => unknown): Promise<unknown> {
    if (this.has(key)) return this.#call.steps[key];
    const value = toStorable(await fn(), `step ${JSON.stringify(key)}`);
    this.#check();
    await this.#io.record(key, value);
    return value;
  }
}

/** Makes `ctx.step`. `within`: a prefix of the keys, which distinguishes the steps of parallel functions of a task. */
export function createStepFunction(steps: CtxStepResults, check: () => void, within: string): Ctx["step"] {
  return async <T>(key: string, fn: () => T | Promise<T>): Promise<T> => {
    check();
    if (typeof key !== "string" || key === "" || key.length > MAX_KEY_LENGTH || key === "__proto__") {
      throw new TypeError(`ctx.step needs a key of 1 to ${MAX_KEY_LENGTH} characters`);
    }
    return (await steps.run(within + key, fn)) as T;
  };
}
