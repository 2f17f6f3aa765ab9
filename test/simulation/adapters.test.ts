import { describe, expect, test } from "vitest";
import { clockContract } from "../contracts/clock.ts";
import { randomContract } from "../contracts/random.ts";
import { schedulerContract } from "../contracts/scheduler.ts";
import { SimulatedClock } from "./clock.ts";
import { SimulatedRandom } from "./random.ts";
import { SimulatedScheduler } from "./scheduler.ts";

clockContract("simulated", () => {
  const clock = new SimulatedClock();
  return { clock, pass: (ms) => Promise.resolve(clock.advance(ms)) };
});
randomContract("simulated", () => new SimulatedRandom(7));
for (const seed of [undefined, 1, 2, 3]) {
  schedulerContract(seed === undefined ? "simulated" : `simulated, seed ${seed}`, () => {
    const random = seed === undefined ? undefined : new SimulatedRandom(seed);
    const clock = new SimulatedClock();
    const scheduler = new SimulatedScheduler(clock, random);
    return { scheduler, now: () => clock.mono(), pass: (ms) => scheduler.advance(ms) };
  });
}

/** Returns the order that one seed produces where the port leaves it open. */
async function order(seed: number): Promise<string> {
  const scheduler = new SimulatedScheduler(new SimulatedClock(), new SimulatedRandom(seed));
  const seen: string[] = [];
  for (let i = 0; i < 4; i++) {
    scheduler.external(() => seen.push(`e${i}`));
    scheduler.after(0, () => seen.push(`t${i}`));
    scheduler.soon(() => seen.push(`s${i}`));
  }
  await scheduler.settle();
  return seen.join(" ");
}

describe("a seed", () => {
  test("repeats an order exactly", async () => {
    for (let seed = 0; seed < 20; seed++) expect(await order(seed)).toBe(await order(seed));
  });

  test("another one finds another order, and soon keeps its own", async () => {
    const orders = new Set<string>();
    for (let seed = 0; seed < 50; seed++) {
      const found = await order(seed);
      orders.add(found);
      expect(found.split(" ").filter((name) => name.startsWith("s"))).toEqual(["s0", "s1", "s2", "s3"]);
      expect(found.split(" ")).toHaveLength(12);
    }
    expect(orders.size).toBeGreaterThan(45);
  });
});

describe("simulated time", () => {
  test("each timer sees the time that it was set for", async () => {
    const clock = new SimulatedClock();
    const scheduler = new SimulatedScheduler(clock);
    const seen: number[] = [];
    for (const ms of [10, 2_000_000_000_000, 25]) scheduler.after(ms, () => seen.push(clock.mono()));
    scheduler.after(10, () => scheduler.after(5, () => seen.push(clock.mono())));
    await scheduler.advance(1_000);
    expect(seen).toEqual([10, 15, 25]);
    expect(clock.mono()).toBe(1_000);
    expect(scheduler.timers).toBe(1);
    expect(await scheduler.untilIdle(1_000)).toBe(false);
    expect(await scheduler.untilIdle(3_000_000_000_000)).toBe(true);
    expect(seen.at(-1)).toBe(2_000_000_000_000);
  });

  test("a jump of the wall clock moves no timer", async () => {
    const clock = new SimulatedClock();
    const scheduler = new SimulatedScheduler(clock);
    let fired = 0;
    scheduler.after(10, () => fired++);
    clock.jump(-60_000);
    clock.jump(1_000_000);
    await scheduler.settle();
    expect(fired).toBe(0);
    await scheduler.advance(10);
    expect(fired).toBe(1);
  });

  test("after a kill nothing happens any more", async () => {
    const scheduler = new SimulatedScheduler(new SimulatedClock());
    let ran = 0;
    scheduler.soon(() => ran++);
    scheduler.after(1, () => ran++);
    scheduler.external(() => ran++);
    scheduler.kill();
    scheduler.soon(() => ran++);
    scheduler.after(1, () => ran++);
    await scheduler.advance(10);
    expect(ran).toBe(0);
  });
});
