import { expect, test } from "vitest";
import { defaultLimits } from "../../actors/create-system.ts";
import { type IdleEntry, IdleThreads } from "../../actors/idle-threads.ts";
import { HeldScheduler } from "../stream/support.ts";

class Idle {
  readonly alive = true;
  readonly runs = new Map<string, never>();
  readonly claims = 0;
  readonly values = null;
  readonly largeStateBytes = 0;
  idleEntry: IdleEntry<Idle> | null = null;
}

test("a thread that cannot be removed from memory yet adds no second timer", async () => {
  const scheduler = new HeldScheduler();
  const clock = { now: () => scheduler.now, mono: () => scheduler.now };
  const threads = new IdleThreads<Idle>(clock, scheduler, { ...defaultLimits, idle: 1_000 }, () => false);
  threads.update(new Idle());
  await scheduler.pass(600);
  threads.update(new Idle());
  await scheduler.pass(10_000);
  threads.stop();
  expect(scheduler.timers).toBe(0);
});
