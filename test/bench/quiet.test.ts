import { expect, test } from "vitest";
import { type NoiseMeter, HostNoiseMeter, measureWhileQuiet } from "../../bench/quiet.ts";

/** A machine with these stolen shares, one for each measurement, and with patience for `patience` more measurements. */
function aMachine(stolen: readonly number[], patience: number) {
  const calls: string[] = [];
  let at = 0;
  const meter: NoiseMeter = {
    wait: async () => void calls.push("wait"),
    during: async (task) => ({
      result: await task(),
      noise: { stolen: stolen[at++] as number, memory: 100 },
    }),
    isQuiet: (noise) => noise.stolen === 0,
    spend: () => patience-- > 0,
  };
  return { meter, calls };
}

test.each([
  ["the first, when it is quiet", [0], 9, 1],
  ["the first that is quiet", [5, 3, 0, 0], 9, 3],
  ["the last one, when none is", [5, 3, 4, 2], 9, 4],
  ["one that is not quiet, when there is no patience left", [5, 3, 0], 1, 2],
] as const)("of several tries %s is returned", async (_, stolen, patience, nth) => {
  const { meter, calls } = aMachine(stolen, patience);
  let made = 0;
  const { result, noise } = await measureWhileQuiet(meter, 4, async () => ++made);
  expect([result, made, noise.stolen]).toEqual([nth, nth, stolen[nth - 1]]);
  expect(calls).toEqual(Array.from({ length: nth }, () => "wait"));
});

test("without patience nothing is waited for, and the noise is returned nevertheless", async () => {
  const quiet = new HostNoiseMeter(0, 2 ** 16);
  await quiet.wait();
  const { result, noise } = await quiet.during(async () => "a result");
  expect(result).toBe("a result");
  expect(noise.stolen).toBeGreaterThanOrEqual(0);
  expect(noise.stolen).toBeLessThanOrEqual(1);
  expect(noise.memory).toBeGreaterThan(0);
  expect(quiet.spend(1)).toBe(false);
});
