import { systemScheduler } from "../platform/scheduler.ts";

/**
 * Waits at most `ms` for the first answer of a server, then aborts the signal. It has its own timer: if a peer accepts connections and
 * closes them at once, `fetch` never ends and does not keep the process alive, nor does `AbortSignal.timeout`.
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
