import type { Backoff, NodeCall, TaskOutcome } from "../../src/ports/engine.ts";

/** Pauses of a call that says nothing of them. */
const DEFAULT: Backoff = { initial: 500, factor: 2, max: 128_000, jitter: true };

/**
 * Milliseconds before a failed try is followed by another; null when it is not. `chance` is from 0 to 1. An abort is somebody's
 * wish, and a refused answer has to be given anew: neither gets better by trying again.
 */
export function retryAfter(call: NodeCall, outcome: TaskOutcome, chance: number): number | null {
  if (outcome.kind !== "failed" || outcome.refused !== undefined || outcome.final) return null;
  if (call.try >= call.tries || outcome.error.error === "AbortError") return null;
  const { initial, factor, max, jitter } = call.backoff ?? DEFAULT;
  return Math.min(initial * factor ** (call.try - 1), max) * (jitter ? 1 + chance / 4 : 1);
}
