import { computed, signal } from "@preact/signals";
import { useEffect } from "preact/hooks";

/** Milliseconds between two ticks, and while something is seen to move. */
const TICK = 1_000;
const FAST = 100;

/** Now, in epoch milliseconds: the one clock for every age and every duration on the page. */
export const now = signal(Date.now());

/** The same, for what is told in whole seconds. */
export const nowInSeconds = computed(() => Math.floor(now.value / 1_000) * 1_000);

let movers = 0;
let timer: ReturnType<typeof setInterval>;

const tick = () => (now.value = Date.now());

function wind(): void {
  clearInterval(timer);
  tick();
  timer = setInterval(tick, movers > 0 ? FAST : TICK);
}

wind();
// In the background clocks are slowed down, or stand.
document.addEventListener("visibilitychange", tick);

/** Lets the clock tick faster while something moves. Gives what it shows. */
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
