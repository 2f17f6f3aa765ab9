import type { Cancel } from "../ports/scheduler.ts";
import { systemScheduler } from "../platform/scheduler.ts";

/**
 * Waits for the first answer of a server, at most `ms`. Where something accepts connections and closes them at once, `fetch` never ends
 * and does not keep the process alive.
 * @throws Error when there is no answer in time
 */
export function answerInTime<T>(asking: Promise<T>, ms: number): Promise<T> {
  let cancel: Cancel | undefined;
  const late = new Promise<never>((_, reject) => {
    const refuse = () => reject(new Error(`no answer in ${ms / 1_000} s`));
    cancel = systemScheduler.after(ms, refuse, true);
  });
  return Promise.race([asking, late]).finally(cancel);
}
