import { expect, test } from "vitest";
import { directory } from "../e2e/support/server.ts";
import { hammer } from "./hammer.ts";

test.each(["uws", "node"] as const)(
  "whatever clients do at once over %s: each answer is right, and run, thread and storage agree",
  async (transport) => {
    const data = await directory();
    const { faults, answers, rounds } = await hammer({
      data,
      seconds: 3,
      requests: 400,
      seed: 20_261_124,
      transport,
    });
    expect(faults).toEqual([]);
    expect(rounds).toBeGreaterThan(0);
    // It gets far enough to be of use.
    expect(answers.get("start 200") ?? 0).toBeGreaterThan(0);
    expect(answers.get("delete run 204") ?? 0).toBeGreaterThan(0);
  },
  120_000,
);
