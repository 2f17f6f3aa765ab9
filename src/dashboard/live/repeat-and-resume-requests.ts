import type { Run } from "../api/records.ts";

/** Returns a request for a new run with the input and the settings of `run`. */
export function repeatRequestOf({ assistant_id, kwargs }: Run) {
  const { input, command, config, context, interrupt_before, interrupt_after } = kwargs;
  const { configurable = {}, metadata: _, ...rest } = config ?? {};
  // The keys that the server has added to the configuration of `run` are left out, because the server adds them to
  // each run.
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
 * Returns a request for a run that continues the thread from its last checkpoint, with the settings of `run`. The
 * server refuses the request while another run of the thread is in progress.
 */
export function resumeRequestOf(run: Run) {
  const { command: _, ...request } = repeatRequestOf(run);
  return { ...request, input: null, multitask_strategy: "reject" };
}
