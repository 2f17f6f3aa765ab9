import type { Scheduler } from "../ports/scheduler.ts";
import type { KeyValueStore } from "../ports/key-value-store.ts";
import type { WriteOutage } from "./write-outage.ts";

/** Milliseconds before the first attempt. */
const FIRST_DELAY_MS = 50;
/** Milliseconds: the longest time between two attempts. */
const MAX_DELAY_MS = 2_000;

/**
 * Closes a store whose write failed and opens it again, until that works and `test`, which writes to it, resolves. The store stays open for
 * reading as long as a probe says that writes would fail again. Never rejects. Returns false when `stop` is aborted.
 */
export async function reopen(
  kv: KeyValueStore,
  scheduler: Scheduler,
  outage: WriteOutage,
  stop: AbortSignal,
  test: () => Promise<void>,
): Promise<boolean> {
  for (let ms = FIRST_DELAY_MS; ; ms = Math.min(ms * 2, MAX_DELAY_MS)) {
    await pause(ms, scheduler, stop);
    if (stop.aborted) return false;
    try {
      await kv.probe?.();
      await kv.close();
      await kv.open();
      await test();
      return true;
    } catch (cause) {
      outage.goesOn(cause);
    }
  }
}

function pause(ms: number, scheduler: Scheduler, stop: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      cancel();
      stop.removeEventListener("abort", done);
      resolve();
    };
    const cancel = scheduler.after(ms, done);
    if (stop.aborted) done();
    else stop.addEventListener("abort", done);
  });
}
