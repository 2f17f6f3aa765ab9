import { beforeAll, expect, test } from "vitest";
import { build } from "../../config/process.ts";
import { runClusterChaos } from "./driver.ts";

/** Characters: the longest evidence of a violation that is printed. */
const MOST = 2000;

beforeAll(build, 120_000);

test("a cluster under faults: nothing acknowledged is lost, nothing is repeated, no former owner writes", async () => {
  const { violations, runs, takeovers } = await runClusterChaos({
    faults: 3,
    seed: 20_261,
    only: ["kill a node", "pause a node", "restart the database"],
    threads: 12,
    clients: 8,
    longest: 500,
    linger: false,
  });
  const shown = violations.map(({ invariant, message, evidence }) => [
    invariant,
    message,
    (JSON.stringify(evidence) ?? "").slice(0, MOST),
  ]);
  expect(shown).toEqual([]);
  expect(runs).toBeGreaterThan(20);
  expect(takeovers).toBeGreaterThan(4);
}, 300_000);
