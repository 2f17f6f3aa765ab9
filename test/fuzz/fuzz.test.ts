import { expect, test } from "vitest";
import { fuzzServer } from "./fuzz.ts";

test.each(["uws", "node"] as const)("odd requests over %s: each answer is right", async (transport) => {
  const { sent, statuses, finding } = await fuzzServer({ requests: 600, seed: 20_261_124, transport });
  expect(finding).toBeUndefined();
  expect(sent).toBeGreaterThan(300);
  // They get far enough to be of use.
  expect(statuses.get(200) ?? 0).toBeGreaterThan(sent / 10);
});
