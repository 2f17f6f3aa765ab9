import type { Scheduler } from "../ports/scheduler.ts";
import type { KeyValueStore } from "../ports/key-value-store.ts";
import type { WriteOutage } from "./write-outage.ts";

/** Milliseconds to wait before the first attempt to open the store again. */
const FIRST_DELAY_MS = 50;
/** The longest time between two attempts, in milliseconds. */
const MAX_DELAY_MS = 2_000;

/**
 * Closes a store in which a write has failed, and opens it again, until the store opens and `test`, which writes to it, resolves. While a
 * probe shows that writes would fail again, the store is not closed, so that it can still be read. Never rejects. Resolves with true when
 * the store works again, with false when `stop` is aborted.
 */
export async function reopenStore(
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
