import type { Backoff, NodeCall, TaskOutcome } from "../../src/ports/engine.ts";

/** The backoff of a retry policy that sets none. `initial` and `max` are in milliseconds. */
const DEFAULT_BACKOFF: Backoff = { initial: 500, factor: 2, max: 128_000, jitter: true };

/**
 * Milliseconds until a failed attempt of a task is repeated; null: it is not repeated. `chance`: a random number from 0
 * to 1, for the jitter.
 */
export function taskRetryDelay(call: NodeCall, outcome: TaskOutcome, chance: number): number | null {
  // An attempt whose answer was refused is not repeated, because the client has to answer again.
  if (outcome.kind !== "failed" || outcome.refused !== undefined || outcome.final) return null;
  // An aborted attempt is not repeated, because the abort was intended.
  if (call.try >= call.tries || outcome.error.error === "AbortError") return null;
  const { initial, factor, max, jitter } = call.backoff ?? DEFAULT_BACKOFF;
  return Math.min(initial * factor ** (call.try - 1), max) * (jitter ? 1 + chance / 4 : 1);
}
