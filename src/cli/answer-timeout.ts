import { systemScheduler } from "../platform/scheduler.ts";

/**
 * Calls `ask` and resolves with its result. After `ms` milliseconds without a result, the signal is aborted. The timer keeps the process
 * alive, because `fetch` and `AbortSignal.timeout` do not: if a peer accepts connections and closes them at once, `fetch` never settles.
 */
export async function answerInTime<T>(ask: (signal: AbortSignal) => Promise<T>, ms: number): Promise<T> {
  const late = new AbortController();
  const abort = () => late.abort(new Error(`no answer in ${ms / 1_000} s`));
  const cancel = systemScheduler.after(ms, abort, true);
  try {
    return await ask(late.signal);
  } finally {
    cancel();
  }
}
