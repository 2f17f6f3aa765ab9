import type { NodeCall, TaskOutcome } from "../../src/ports/engine.ts";

/** LangGraph's default policy: half a second, doubled each time, at most 128 seconds, spread by chance. */
const FIRST = 500;
const MOST = 128_000;

/**
 * Milliseconds before a failed try is followed by another; null when it is not. `chance` is from 0 to 1. An abort is somebody's
 * wish, and a refused answer has to be given anew: neither gets better by trying again.
 */
export function retryAfter(call: NodeCall, outcome: TaskOutcome, chance: number): number | null {
  if (outcome.kind !== "failed" || outcome.refused !== undefined) return null;
  if (call.try >= call.tries || outcome.error.error === "AbortError") return null;
  return Math.min(FIRST * 2 ** (call.try - 1), MOST) * (1 + chance / 4);
}
