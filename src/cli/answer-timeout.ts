import { systemScheduler } from "../platform/scheduler.ts";

/**
 * Waits at most `ms` for the first answer of a server, then aborts the signal. Its own timer keeps the process alive. That is needed if a
 * peer accepts connections and closes them at once: then `fetch` never settles, and neither `fetch` nor `AbortSignal.timeout` keeps the
 * process alive.
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
