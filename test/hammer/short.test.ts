import { expect, test } from "vitest";
import { describeOverEachTransport } from "../transport/each.ts";
import { directory } from "../e2e/support/server.ts";
import { hammer } from "./hammer.ts";

describeOverEachTransport("whatever clients do at once", (transport) => {
  test("each answer is right, and run, thread and storage agree", async () => {
    const data = await directory();
    const { faults, answers, rounds } = await hammer({
      data,
      seconds: 3,
      requests: 400,
      seed: 20_261_124,
      transport,
    });
    // One text: a report that shortens lists of differences still shows it.
    expect(faults.join("\n\n")).toBe("");
    expect(rounds).toBeGreaterThan(0);
    // The requests reach working runs.
    expect(answers.get("start 200") ?? 0).toBeGreaterThan(0);
    expect(answers.get("delete run 204") ?? 0).toBeGreaterThan(0);
  }, 120_000);
});
