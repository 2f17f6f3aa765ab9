import { expect, test } from "vitest";
import { type Ear, Quiet, quietly } from "../../bench/quiet.ts";

/** A machine on which so much is stolen, one measurement after the other, and patience for so many more of them. */
function aMachine(stolen: readonly number[], patience: number) {
  const said: string[] = [];
  let at = 0;
  const ear: Ear = {
    wait: async () => void said.push("wait"),
    during: async (task) => ({ told: await task(), noise: { stolen: stolen[at++] as number, memory: 100 } }),
    isQuiet: (noise) => noise.stolen === 0,
    spend: () => patience-- > 0,
  };
  return { ear, said };
}

test.each([
  ["the first, when it is quiet", [0], 9, 1],
  ["the first that is quiet", [5, 3, 0, 0], 9, 3],
  ["the last one, when none is", [5, 3, 4, 2], 9, 4],
  ["one that is not quiet, when there is no patience left", [5, 3, 0], 1, 2],
] as const)("of several tries %s is told", async (_, stolen, patience, nth) => {
  const { ear, said } = aMachine(stolen, patience);
  let made = 0;
  const { told, noise } = await quietly(ear, 4, async () => ++made);
  expect([told, made, noise.stolen]).toEqual([nth, nth, stolen[nth - 1]]);
  expect(said).toEqual(Array.from({ length: nth }, () => "wait"));
});

test("without patience nothing is waited for, and the noise is told all the same", async () => {
  const quiet = new Quiet(0);
  await quiet.wait();
  const { told, noise } = await quiet.during(async () => "told");
  expect(told).toBe("told");
  expect(noise.stolen).toBeGreaterThanOrEqual(0);
  expect(noise.stolen).toBeLessThanOrEqual(1);
  expect(noise.memory).toBeGreaterThan(0);
  expect(quiet.spend(1)).toBe(false);
});
