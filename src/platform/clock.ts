import type { Clock } from "../ports/clock.ts";

/** The clock of the machine. */
export const systemClock: Clock = {
  now: () => Date.now(),
  mono: () => performance.now(),
};
