import { describe, expect, test } from "vitest";
import { simulate } from "./seed.ts";
import { World } from "./world.ts";

/** `SEED=17` replays one world; `SEEDS=10000` runs more, as `npm run simulate` does. */
const only = process.env["SEED"];
const seeds = only === undefined ? Number(process.env["SEEDS"] ?? 12) : 1;
const first = only === undefined ? 1 : Number(only);

describe("a simulated server, its clients, its stops and its crashes", () => {
  const worlds: World[] = [];

  test(`keeps I1 to I14 under ${seeds} seeds from ${first}`, { timeout: 240_000 }, async () => {
    for (let seed = first; seed < first + seeds; seed++) {
      // The failure message contains the seed: SEED=<seed> replays the world.
      const { violations, world } = await simulate(seed);
      expect({ seed, violations }).toEqual({ seed, violations: [] });
      if (worlds.length < 10) worlds.push(world);
    }
  });

  test("keeps them over a storage whose reads take time", { timeout: 240_000 }, async () => {
    for (let seed = first; seed < first + seeds; seed++) {
      const { violations } = await simulate(seed, null, true);
      expect({ seed, violations }).toEqual({ seed, violations: [] });
    }
  });

  test.skipIf(seeds < 10)(
    "these worlds run nodes, machines, stops, crashes, streams, crons and updates at all",
    () => {
      let executions = 0;
      let frames = 0;
      let updates = 0;
      let crons = 0;
      let events = 0;
      let cancels = 0;
      let marks = 0;
      const ended = { stop: 0, cut: 0, kill: 0, power: 0 };
      expect(worlds).toHaveLength(10);
      for (const world of worlds) {
        executions += world.observed.executions;
        updates += world.observed.updates.length;
        crons += world.observed.cronRuns;
        for (const machine of world.clients.machines.all) {
          events += machine.sent.length;
          marks += machine.marks.filter(({ acknowledged }) => acknowledged).length;
        }
        cancels += world.clients.machines.cancels;
        for (const how of ["stop", "cut", "kill", "power"] as const) ended[how] += world.ended[how];
        for (const transcript of world.clients.transcripts.values()) frames += transcript.frames.size;
      }
      expect(executions).toBeGreaterThan(100);
      expect(frames).toBeGreaterThan(100);
      expect(updates).toBeGreaterThan(5);
      expect(crons).toBeGreaterThan(0);
      expect(events).toBeGreaterThan(50);
      expect(cancels).toBeGreaterThan(0);
      expect(marks).toBeGreaterThan(0);
      expect(ended.stop).toBeGreaterThan(3);
      expect(ended.kill + ended.power).toBeGreaterThan(3);
      expect(ended.cut).toBeGreaterThan(0);
    },
  );

  test("the same seed gives the same world", { timeout: 60_000 }, async () => {
    const tell = async () => {
      const world = new World({ seed: 4 });
      await world.run();
      const frames = [...world.clients.transcripts].map(([run, { frames: all }]) => [run, ...all.values()]);
      return { appends: world.observed.appends, executions: world.observed.executions, frames };
    };
    expect(await tell()).toEqual(await tell());
  });

  test.each([
    ["acknowledges before it has stored", "ack-early", "I1:"],
    ["loses what it owes to webhooks", "lose-webhooks", "I9:"],
    ["loses the timers of machines", "lose-timers", "I14:"],
    ["keeps something of what it deletes", "keep-hidden", "I10:"],
    ["writes about a run after its end as it stops", "parked-ending", "I11:"],
    ["waits its whole time when it stops, though no node runs", "lost-pause", "I12:"],
  ] as const)("finds a server that %s", { timeout: 60_000 }, async (_, plant, invariant) => {
    let found: readonly string[] = [];
    for (let seed = 1; seed <= 40 && found.length === 0; seed++) {
      const { violations } = await simulate(seed, plant);
      found = violations.filter((what) => what.startsWith(invariant));
    }
    expect(found).not.toEqual([]);
  });
});
