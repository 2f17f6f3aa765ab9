import { expect, test } from "vitest";
import { cachedFor } from "../../src/metrics/cached-reading.ts";
import { EventLoopLag } from "../../src/metrics/event-loop-lag.ts";
import type { Clock } from "../../src/ports/clock.ts";
import { Timers } from "../http/support.ts";

function timed() {
  let now = 0;
  const clock: Clock = { now: () => now, mono: () => now };
  const timers = new Timers();
  return {
    clock,
    timers,
    /** Advances the time; timers fire `late` milliseconds after they are due. */
    pass(ms: number, late = 0) {
      now += ms + late;
      timers.advance(ms);
    },
  };
}

test("the lag is how late a timer fires, told while somebody looks now and then", () => {
  const { clock, timers, pass } = timed();
  const lag = new EventLoopLag(clock, timers);
  expect(timers.pending).toBe(0);
  const seen: number[] = [];
  const look = () => lag.look((value) => void seen.push(value));
  look();
  look();
  expect(timers.pending).toBe(1);
  pass(100);
  pass(100, 250);
  expect(seen).toEqual([0, 0.25]);
  for (let i = 0; i < 10_000 && timers.pending > 0; i++) pass(100);
  expect(timers.pending).toBe(0);
  const before = seen.length;
  look();
  pass(100);
  expect(seen).toHaveLength(before + 1);
});

test("closed, it has no timer and begins none", () => {
  const { clock, timers } = timed();
  const lag = new EventLoopLag(clock, timers);
  lag.look(() => undefined);
  lag.close();
  lag.look(() => undefined);
  expect(timers.pending).toBe(0);
});

test("what is dear to find out is kept for a while; a failure is not", async () => {
  const { clock, pass } = timed();
  let reads = 0;
  const read = cachedFor(1_000, clock, async () => {
    reads++;
    if (reads === 2) throw new Error("not now");
    return reads;
  });
  expect(await Promise.all([read(), read()])).toEqual([1, 1]);
  pass(999);
  expect(await read()).toBe(1);
  pass(1);
  await expect(read()).rejects.toThrow("not now");
  expect(await read()).toBe(3);
});
