import { md5Hex } from "../model/ids.ts";
import type { Ctx, ParallelFunction } from "../graph/node-context.ts";
import { isPause } from "../graph/interrupts.ts";
import type { TaskInterrupts } from "./task-interrupts.ts";
import { createStepFunction, type CtxStepResults } from "./ctx-step-results.ts";

/** Services that the parallel functions of one attempt of a task share. */
interface Shared {
  readonly questions: TaskInterrupts;
  readonly steps: CtxStepResults;
  readonly check: () => void;
}

/** Makes a `ctx.interrupt` that throws when the attempt of the task is over. */
export function checkedInterrupt(ask: Ctx["interrupt"], check: () => void): Ctx["interrupt"] {
  return (value, options) => {
    check();
    return ask(value, options);
  };
}

/**
 * Runs functions in parallel within one attempt of a task. The interrupts of a function are identified by its position
 * in `functions`, and its steps by this position and its {@link ParallelFunction.key}. A replay identifies them in the
 * same way, in whatever order the functions finish.
 */
export async function runParallel(
  ctx: Ctx,
  within: string,
  ask: Ctx["interrupt"],
  functions: readonly ParallelFunction[],
  shared: Shared,
): Promise<readonly PromiseSettledResult<unknown>[]> {
  const { questions, steps, check } = shared;
  check();
  const { asks, join } = questions.parallelScopes(ask, functions.length);
  const keys = functions.map(({ key }, i) => `~${md5Hex(`${within}|${i}|${key}`)}`);
  const settled = await Promise.allSettled(
    functions.map(async ({ run }, i) => {
      const key = keys[i] as string;
      if (steps.has(key)) return steps.run(key, () => undefined);
      const own = asks[i] as Ctx["interrupt"];
      const functionCtx: Ctx = Object.create(ctx, {
        interrupt: { value: checkedInterrupt(own, check) },
        step: { value: createStepFunction(steps, check, `${key}:`) },
        "~parallel": {
          value: (more: readonly ParallelFunction[]) =>
            runParallel(functionCtx, `${key}:`, own, more, shared),
        },
      });
      return run(functionCtx);
    }),
  );
  join();
  if (settled.some((one) => one.status === "rejected" && isPause(one.reason))) {
    await Promise.all(
      settled.map((one, i) => one.status === "fulfilled" && steps.run(keys[i] as string, () => one.value)),
    );
  }
  return settled;
}
