import { computed, signal } from "@preact/signals";
import { useEffect } from "preact/hooks";

/** Milliseconds between two ticks of the clock. */
const TICK_MS = 1_000;
/** Milliseconds between two ticks while a component asks for a fast clock ({@link useNow}). */
const FAST_TICK_MS = 100;

/**
 * The current time in epoch milliseconds, updated with each tick. All ages and durations on the page use this clock.
 */
export const now = signal(Date.now());

/** The current time, rounded down to whole seconds, for texts that show no fractions. */
export const nowTruncatedToSeconds = computed(() => Math.floor(now.value / 1_000) * 1_000);

let movers = 0;
let timer: ReturnType<typeof setInterval>;

const tick = () => (now.value = Date.now());

function wind(): void {
  clearInterval(timer);
  tick();
  timer = setInterval(tick, movers > 0 ? FAST_TICK_MS : TICK_MS);
}

wind();
// Browsers slow down or stop the timers of background pages, so the time is updated when the page is shown again.
document.addEventListener("visibilitychange", tick);

/**
 * Returns the current time in epoch milliseconds. With `isMoving`, the clock ticks every 100 ms, and each tick renders
 * the component again; otherwise the component is not rendered by ticks.
 */
export function useNow(isMoving: boolean): number {
  useEffect(() => {
    if (!isMoving) return undefined;
    movers++;
    wind();
    return () => {
      movers--;
      wind();
    };
  }, [isMoving]);
  return isMoving ? now.value : now.peek();
}
