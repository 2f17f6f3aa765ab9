import { systemClock } from "../../../src/platform/clock.ts";
import type { Clock } from "../../../src/ports/clock.ts";

/** A clock that starts this many milliseconds before a full minute. */
export function shortlyBeforeAMinute(ms: number): Clock {
  const now = systemClock.now();
  const shift = (60_000 - (now % 60_000) - ms + 60_000) % 60_000;
  return { now: () => systemClock.now() + shift, mono: () => systemClock.mono() };
}
