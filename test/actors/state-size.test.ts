import { expect, test } from "vitest";
import { StateSizeEstimate } from "../../actors/thread/state-size-estimate.ts";

const LARGE = 1_000;

/**
 * A number: a change of that many bytes. `measured`: the state is measured if it should be; otherwise that is an error.
 */
type Step = number | { readonly measured: number };

function after(stored: number | null, steps: readonly Step[]): StateSizeEstimate {
  const size = new StateSizeEstimate(stored, LARGE);
  for (const step of steps) {
    expect(size.isOutdated).toBe(typeof step !== "number");
    if (typeof step === "number") size.grow(step);
    else size.measured(step.measured);
  }
  return size;
}

test.each<[string, number | null, Step[], { bytes: number; isLarge: boolean; isOutdated: boolean }]>([
  ["of a new thread is nothing", 0, [], { bytes: 0, isLarge: false, isOutdated: false }],
  ["is the sum of small changes", 0, [400, 500], { bytes: 900, isLarge: false, isOutdated: false }],
  ["is measured once that is large", 0, [400, 600], { bytes: 1_000, isLarge: true, isOutdated: true }],
  ["may be small even so", 0, [1_000, { measured: 9 }], { bytes: 9, isLarge: false, isOutdated: false }],
  [
    "is measured again when it has grown by a quarter",
    0,
    [9_000, { measured: 8_000 }, 1_999, 1],
    { bytes: 10_000, isLarge: true, isOutdated: true },
  ],
  ["goes on from what is stored", 700, [299], { bytes: 999, isLarge: false, isOutdated: false }],
  ["that is stored may be a sum", 700, [300], { bytes: 1_000, isLarge: true, isOutdated: true }],
  ["is measured where a large one is stored", 5_000, [], { bytes: 5_000, isLarge: true, isOutdated: true }],
  ["is measured where none is stored", null, [], { bytes: 0, isLarge: false, isOutdated: true }],
  ["is known then", null, [{ measured: 3 }, 4], { bytes: 7, isLarge: false, isOutdated: false }],
])("the size of a state %s", (_, stored, steps, expected) => {
  const { bytes, isLarge, isOutdated } = after(stored, steps);
  expect({ bytes, isLarge, isOutdated }).toEqual(expected);
});

test.each<[string, number | null, Step[], number | null]>([
  ["the sum of a small one", 0, [400], 400],
  ["a small one where the sum was too high", 990, [10, { measured: 9 }], 9],
  ["a large one", 400, [1_000, { measured: 1_300 }], 1_300],
  ["the largest, where a later one is small", 1_300, [{ measured: 20 }], 1_300],
  ["the largest, where a later one is larger", 1_300, [{ measured: 1_300 }, 100], 1_400],
  ["nothing while it is not known", null, [], null],
  ["what was not known before", null, [{ measured: 20 }], 20],
])("is stored with the thread: %s", (_, stored, steps, expected) => {
  expect(after(stored, steps).toStore(stored)).toBe(expected);
});
