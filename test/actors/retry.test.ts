import { expect, test } from "vitest";
import { taskRetryDelay } from "../../actors/run/retry-delay.ts";
import type { NodeCall, TaskOutcome } from "../../src/ports/engine.ts";

const failed: TaskOutcome = { kind: "failed", error: { error: "Error", message: "x" } };
const call = (parts: Partial<NodeCall>) => ({ try: 1, tries: 3, ...parts }) as NodeCall;

test("pauses: half a second, doubled, spread by up to a quarter, at most 128 seconds", () => {
  const pauses = [1, 2, 3, 9].map((n) => taskRetryDelay(call({ try: n, tries: 10 }), failed, 0));
  expect(pauses).toEqual([500, 1_000, 2_000, 128_000]);
  expect(taskRetryDelay(call({}), failed, 1)).toBe(625);
});

test("pauses as the node says", () => {
  const backoff = { initial: 10, factor: 3, max: 50, jitter: false };
  const pauses = [1, 2, 3].map((n) => taskRetryDelay(call({ try: n, tries: 4, backoff }), failed, 1));
  expect(pauses).toEqual([10, 30, 50]);
});

test.each<[string, Partial<NodeCall>, TaskOutcome]>([
  ["after the last try", { try: 3 }, failed],
  ["after an abort", {}, { kind: "failed", error: { error: "AbortError", message: "" } }],
  ["after what another try would not mend", {}, { ...failed, final: true }],
  ["after a result", {}, { kind: "returned", value: 1 }],
])("no further try %s", (_, parts, outcome) => expect(taskRetryDelay(call(parts), outcome, 0)).toBeNull());
