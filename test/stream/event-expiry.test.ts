import { expect, test } from "vitest";
import type { ThreadKey } from "../../src/model/thread.ts";
import { DEFAULT_EVENT_TTL, EventExpiry } from "../../src/stream/event-expiry.ts";
import { HeldScheduler, KEY, Lines } from "./support.ts";

const HOUR = 3_600_000;

/** Returns the given answers, and records the calls. */
function rig(ttl: number, answers: readonly (ThreadKey | null | Error)[]) {
  const scheduler = new HeldScheduler();
  const lines = new Lines();
  const asked: [at: number, before: number, from: string | null][] = [];
  const forgotten: number[] = [];
  const clock = { now: () => 10 * DEFAULT_EVENT_TTL + scheduler.now, mono: () => scheduler.now };
  const expiry = new EventExpiry({
    journal: {
      async expireEvents(before, from) {
        asked.push([scheduler.now, before - 10 * DEFAULT_EVENT_TTL, from?.thread ?? null]);
        const answer = answers[asked.length - 1] ?? null;
        if (answer instanceof Error) throw answer;
        return answer;
      },
      async expireOnce(before) {
        forgotten.push(before - 10 * DEFAULT_EVENT_TTL);
        return forgotten.length === 1;
      },
    },
    runLogs: { isRead: () => false },
    clock,
    scheduler,
    logger: lines,
    ttl,
    repeats: HOUR,
  });
  return { expiry, scheduler, asked, lines, forgotten };
}

test("a pass forgets requests of long ago first, piece by piece", async () => {
  const { expiry, scheduler, forgotten } = rig(DEFAULT_EVENT_TTL, [KEY, null]);
  expiry.start();
  await scheduler.pass(60_200);
  expect(forgotten).toEqual([60_000 - HOUR, 60_000 - HOUR]);
  await expiry.stop();
});

test("a pass goes over all threads in pieces, and comes again", async () => {
  const { expiry, scheduler, asked } = rig(DEFAULT_EVENT_TTL, [KEY, null]);
  expiry.start();
  await scheduler.pass(59_999);
  expect(asked).toEqual([]);
  await scheduler.pass(HOUR + 1_000);
  expect(asked).toEqual([
    [60_000, 60_000 - DEFAULT_EVENT_TTL, null],
    [60_100, 60_100 - DEFAULT_EVENT_TTL, KEY.thread],
    [60_100 + HOUR, 60_100 + HOUR - DEFAULT_EVENT_TTL, null],
  ]);
  await expiry.stop();
  expect(scheduler.timers).toBe(0);
});

test("the shorter events are kept, the more often it looks, but not more than once a second", async () => {
  const { expiry, scheduler, asked } = rig(50, []);
  expiry.start();
  await scheduler.pass(3_000);
  expect(asked.map(([at]) => at)).toEqual([1_000, 2_000, 3_000]);
  await expiry.stop();
});

test("a failure is told, and does not end it", async () => {
  const { expiry, scheduler, asked, lines } = rig(10_000, [new Error("no disk")]);
  expiry.start();
  await scheduler.pass(2_000);
  expect(asked).toHaveLength(2);
  expect(lines.lines).toEqual(["old events could not be deleted; retrying later"]);
  await expiry.stop();
});

test("stopped in the middle of a piece, it ends with that piece", async () => {
  const { expiry, scheduler, asked } = rig(10_000, [KEY, KEY]);
  expiry.start();
  await scheduler.pass(1_000);
  await expiry.stop();
  await scheduler.pass(HOUR);
  expect(asked).toHaveLength(1);
});
