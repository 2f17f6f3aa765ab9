import { computed, signal } from "@preact/signals";
import { useEffect } from "preact/hooks";

/** Milliseconds between two ticks: by default, and while the page shows something that moves. */
const TICK = 1_000;
const FAST = 100;

/** The current time in epoch milliseconds. Every age and duration on the page uses this clock. */
export const now = signal(Date.now());

/** The current time, rounded down to whole seconds, for texts that show no fractions. */
export const nowTruncatedToSeconds = computed(() => Math.floor(now.value / 1_000) * 1_000);

let movers = 0;
let timer: ReturnType<typeof setInterval>;

const tick = () => (now.value = Date.now());

function wind(): void {
  clearInterval(timer);
  tick();
  timer = setInterval(tick, movers > 0 ? FAST : TICK);
}

wind();
// Browsers slow down or stop the timers of background pages, so the time is updated when the page is shown again.
document.addEventListener("visibilitychange", tick);

/** Returns the current time. While `isMoving`, the clock ticks faster, and each tick renders the component again. */
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
