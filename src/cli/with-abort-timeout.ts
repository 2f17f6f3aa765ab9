import { systemScheduler } from "../platform/scheduler.ts";

/**
 * Calls `ask` and resolves with its result. If there is no result after `ms` milliseconds, aborts the signal, so that `ask` rejects.
 * The timer keeps the process alive; that of `AbortSignal.timeout` does not. If a peer accepts connections and closes them at once, `fetch`
 * never settles, and the process would end early.
 */
export async function withAbortTimeout<T>(ask: (signal: AbortSignal) => Promise<T>, ms: number): Promise<T> {
  const late = new AbortController();
  const abort = () => late.abort(new Error(`no answer in ${ms / 1_000} s`));
  const cancel = systemScheduler.after(ms, abort, true);
  try {
    return await ask(late.signal);
  } finally {
    cancel();
  }
}
