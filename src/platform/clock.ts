import type { Clock } from "../ports/clock.ts";

/** The machine's own time. */
export const systemClock: Clock = {
  now: () => Date.now(),
  mono: () => performance.now(),
};
