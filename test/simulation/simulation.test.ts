import { describe, expect, test } from "vitest";
import type { Plant } from "./disk.ts";
import { check } from "./invariants.ts";
import { World } from "./world.ts";

/** `SEED=17` replays one; `SEEDS=10000` takes more. */
const only = process.env["SEED"];
const seeds = only === undefined ? Number(process.env["SEEDS"] ?? 600) : 1;
const first = only === undefined ? 1 : Number(only);

async function violations(seed: number, plant: Plant = null): Promise<readonly string[]> {
  const world = new World({ seed, plant });
  try {
    await world.run();
    return await check(world);
  } catch (thrown) {
    return [...world.observed.violations, `I1: what was acknowledged cannot be read: ${String(thrown)}`];
  }
}

describe("a simulated server, its clients and its crashes", () => {
  test(`keeps I1 to I10 under ${seeds} seeds from ${first}`, { timeout: 240_000 }, async () => {
    for (let seed = first; seed < first + seeds; seed++) {
      // The seed is in the message: SEED=<it> replays the world.
      expect({ seed, violations: await violations(seed) }).toEqual({ seed, violations: [] });
    }
  });

  test("the same seed gives the same world", { timeout: 60_000 }, async () => {
    const tell = async () => {
      const world = new World({ seed: 4 });
      await world.run();
      const frames = [...world.clients.transcripts].map(([run, { frames: all }]) => [run, ...all.values()]);
      return { appends: world.observed.appends, executions: world.observed.executions, frames };
    };
    expect(await tell()).toEqual(await tell());
  });

  test("runs nodes, crashes, streams and updates at all", { timeout: 60_000 }, async () => {
    let executions = 0;
    let frames = 0;
    let updates = 0;
    for (let seed = 1; seed <= 10; seed++) {
      const world = new World({ seed });
      await world.run();
      executions += world.observed.executions;
      updates += world.observed.updates.length;
      for (const transcript of world.clients.transcripts.values()) frames += transcript.frames.size;
    }
    expect(executions).toBeGreaterThan(100);
    expect(frames).toBeGreaterThan(100);
    expect(updates).toBeGreaterThan(5);
  });

  test.each([
    ["acknowledges before it has stored", "ack-early", "I1:"],
    ["loses what it owes to webhooks", "lose-webhooks", "I9:"],
    ["keeps something of what it deletes", "keep-hidden", "I10:"],
  ] as const)("finds a server that %s", { timeout: 60_000 }, async (_, plant, invariant) => {
    let found: readonly string[] = [];
    for (let seed = 1; seed <= 40 && found.length === 0; seed++) {
      found = (await violations(seed, plant)).filter((what) => what.startsWith(invariant));
    }
    expect(found).not.toEqual([]);
  });
});
