import { expect, test } from "vitest";
import { runTrials } from "./trials.ts";

test("damage of each kind in each place is never silent, and nothing older is answered", async () => {
  const said: string[] = [];
  const { trials } = await runTrials({ trials: 16, loads: 1, seed: 7 }, (line) => said.push(line));
  expect(trials).toHaveLength(16);
  expect(trials.flatMap(({ silent, wrong }) => [...silent, ...wrong])).toEqual([]);
  const bad = trials.filter(({ isAgreed, isRefused }) => !isAgreed || isRefused);
  expect(
    bad.map(({ done }) => done),
    said.join("\n"),
  ).toEqual([]);
  // Without any loss the test would prove nothing.
  expect(trials.some(({ refused }) => refused > 0)).toBe(true);
}, 120_000);
