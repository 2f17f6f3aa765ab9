import type { Run } from "../api/records.ts";

/** Returns a request that starts a new run with the input and the settings of this run. */
export function repeatRequestOf({ assistant_id, kwargs }: Run) {
  const { input, command, config, context, interrupt_before, interrupt_after } = kwargs;
  const { configurable = {}, metadata: _, ...rest } = config ?? {};
  // Leaves out the keys that the server added to the earlier run: the server adds them to the new run again.
  const own = Object.entries(configurable as object).filter(
    ([name]) =>
      ![
        "run_id",
        "thread_id",
        "graph_id",
        "assistant_id",
        "user_id",
        "checkpoint_id",
        "checkpoint_ns",
      ].includes(name),
  );
  return {
    assistant_id,
    input: input ?? null,
    ...(command !== null && command !== undefined && { command }),
    config: { ...rest, configurable: Object.fromEntries(own) },
    ...(context !== null && context !== undefined && { context }),
    ...(interrupt_before !== null && interrupt_before !== undefined && { interrupt_before }),
    ...(interrupt_after !== null && interrupt_after !== undefined && { interrupt_after }),
    multitask_strategy: "enqueue",
  };
}

/**
 * Returns a request that continues a thread from its last checkpoint, with the settings of the run that
 * failed there. The server refuses the request if another run of the thread is in progress.
 */
export function resumeRequestOf(run: Run) {
  const { command: _, ...request } = repeatRequestOf(run);
  return { ...request, input: null, multitask_strategy: "reject" };
}
