import { expect, test } from "vitest";
import { describeOverEachTransport } from "../transport/each.ts";
import { fuzzServer } from "./fuzz.ts";

describeOverEachTransport("odd requests", (transport) => {
  test("each answer is right", async () => {
    const { sent, statuses, finding } = await fuzzServer({ requests: 600, seed: 20_261_124, transport });
    expect(finding).toBeUndefined();
    expect(sent).toBeGreaterThan(300);
    // Enough requests pass validation.
    expect(statuses.get(200) ?? 0).toBeGreaterThan(sent / 10);
  });
});
