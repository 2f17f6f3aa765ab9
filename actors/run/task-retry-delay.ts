import type { Backoff, NodeCall, TaskOutcome } from "../../src/ports/engine.ts";

/** The backoff of a retry policy that sets none. `initial` and `max` are in milliseconds. */
const DEFAULT_BACKOFF: Backoff = { initial: 500, factor: 2, max: 128_000, jitter: true };

/**
 * Milliseconds until a failed attempt of a task is repeated; null: it is not repeated, because its error is final or no
 * attempts are left. `chance`: a random number from 0 to 1, for the jitter. An aborted attempt is not repeated, because
 * the abort was intended. An attempt whose answer was refused is not repeated either, because the client has to answer
 * again.
 */
export function taskRetryDelay(call: NodeCall, outcome: TaskOutcome, chance: number): number | null {
  if (outcome.kind !== "failed" || outcome.refused !== undefined || outcome.final) return null;
  if (call.try >= call.tries || outcome.error.error === "AbortError") return null;
  const { initial, factor, max, jitter } = call.backoff ?? DEFAULT_BACKOFF;
  return Math.min(initial * factor ** (call.try - 1), max) * (jitter ? 1 + chance / 4 : 1);
}
