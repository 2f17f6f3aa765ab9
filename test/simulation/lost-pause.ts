import { Attempt } from "../../actors/run/attempt.ts";

/**
 * Plants a fault: a graceful stop is not told that a run has paused for it, and waits its whole time for that run. Returns a
 * function that removes the fault.
 */
export function plantLostPause(): () => void {
  const { prototype } = Attempt;
  const checkHalted = Object.getOwnPropertyDescriptor(prototype, "checkHalted") as PropertyDescriptor;
  Object.defineProperty(prototype, "checkHalted", { configurable: true, value: () => undefined });
  return () => void Object.defineProperty(prototype, "checkHalted", checkHalted);
}
