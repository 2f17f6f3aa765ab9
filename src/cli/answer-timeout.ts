import { systemScheduler } from "../platform/scheduler.ts";

/**
 * Waits for the first answer of a server, at most `ms`; then the signal is aborted. A timer of its own: where something accepts connections
 * and closes them at once, `fetch` never ends and does not keep the process alive, nor does `AbortSignal.timeout`.
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
