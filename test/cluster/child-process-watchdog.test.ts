import { expect, test } from "vitest";
import { EventLoopWatchdog, StartWatchdog } from "../../src/cli/child-process-watchdog.ts";
import { Timers } from "../http/support.ts";

const LIMIT_MS = 60_000;

/** A watched process. `answers`: whether it answers a ping at once. */
function watched(limitMs = LIMIT_MS) {
  const timers = new Timers();
  const seen = { pings: 0, hangs: 0 };
  const state = { answers: true };
  const watchdog: EventLoopWatchdog = new EventLoopWatchdog({
    scheduler: timers,
    limitMs,
    ping: () => {
      seen.pings++;
      if (state.answers) watchdog.answered();
    },
    onHang: () => seen.hangs++,
  });
  return { timers, seen, state, watchdog };
}

test("a process that answers is left alone", () => {
  const { timers, seen } = watched();
  timers.advance(10 * LIMIT_MS);
  expect(seen.hangs).toBe(0);
  expect(seen.pings).toBeGreaterThan(100);
});

test("a process that answers nothing for the limit hangs, which is reported once; it gets one ping meanwhile", () => {
  const { timers, seen, state } = watched();
  timers.advance(5_000);
  state.answers = false;
  const before = seen.pings;
  timers.advance(LIMIT_MS);
  expect(seen.hangs).toBe(0);
  timers.advance(2_000);
  expect(seen.hangs).toBe(1);
  timers.advance(10 * LIMIT_MS);
  expect([seen.hangs, seen.pings - before]).toEqual([1, 1]);
});

test("a process that computes for less than the limit is left alone, however often", () => {
  const { timers, seen, state, watchdog } = watched();
  for (let i = 0; i < 20; i++) {
    state.answers = false;
    timers.advance(LIMIT_MS - 5_000);
    state.answers = true;
    watchdog.answered();
    timers.advance(2_000);
  }
  expect(seen.hangs).toBe(0);
});

test("a pause of both processes, such as of the whole machine, counts as one check", () => {
  const { timers, seen, state } = watched();
  state.answers = false;
  timers.advance(LIMIT_MS / 2);
  // After the pause, each timer that is due fires once, and the next one is set from then on.
  timers.pause(3_600_000);
  timers.advance(LIMIT_MS / 2 - 5_000);
  expect(seen.hangs).toBe(0);
  timers.advance(10_000);
  expect(seen.hangs).toBe(1);
});

test("an answer that arrives in the turn of the last check counts", () => {
  const { timers, seen, state, watchdog } = watched(10_000);
  state.answers = false;
  timers.advance(10_000);
  timers.soon(() => watchdog.answered());
  timers.advance(2_000);
  expect(seen.hangs).toBe(0);
});

test("a process that has not answered for two seconds is unresponsive, until it answers", () => {
  const { timers, state, watchdog } = watched();
  timers.advance(60_000);
  expect(watchdog.isUnresponsive).toBe(false);
  state.answers = false;
  timers.advance(2_000);
  expect(watchdog.isUnresponsive).toBe(false);
  timers.advance(2_000);
  expect(watchdog.isUnresponsive).toBe(true);
  watchdog.answered();
  expect(watchdog.isUnresponsive).toBe(false);
});

test("with the limit 0, no process hangs; nor does one after the end", () => {
  const without = watched(0);
  without.state.answers = false;
  without.timers.advance(100 * LIMIT_MS);
  expect([without.seen.hangs, without.watchdog.isUnresponsive]).toEqual([0, true]);
  const ended = watched();
  ended.state.answers = false;
  ended.timers.advance(5_000);
  ended.watchdog.stop();
  ended.timers.advance(2 * LIMIT_MS);
  expect([ended.seen.hangs, ended.timers.pending]).toEqual([0, 0]);
});

/** A process that is starting. */
function starting(limitMs = LIMIT_MS) {
  const timers = new Timers();
  const seen = { hangs: 0 };
  const watchdog = new StartWatchdog({ scheduler: timers, limitMs, onHang: () => seen.hangs++ });
  return { timers, seen, watchdog };
}

test("a process that is not ready within the limit hangs, which is reported once", () => {
  const { timers, seen } = starting();
  timers.advance(LIMIT_MS - 1_000);
  expect(seen.hangs).toBe(0);
  timers.advance(10 * LIMIT_MS);
  expect([seen.hangs, timers.pending]).toEqual([1, 0]);
});

test("a start that takes longer than the limit is left alone while it makes progress", () => {
  const { timers, seen, watchdog } = starting();
  for (let i = 0; i < 20; i++) {
    timers.advance(LIMIT_MS - 1_000);
    watchdog.progressed();
  }
  expect(seen.hangs).toBe(0);
  timers.advance(LIMIT_MS);
  expect(seen.hangs).toBe(1);
});

test("a pause of the whole machine during a start counts as one check", () => {
  const { timers, seen } = starting();
  timers.advance(5_000);
  timers.pause(3_600_000);
  timers.advance(LIMIT_MS - 10_000);
  expect(seen.hangs).toBe(0);
});

test("with the limit 0, no start hangs; nor does one that is over", () => {
  const without = starting(0);
  const ready = starting();
  ready.watchdog.stop();
  for (const { timers, seen } of [without, ready]) {
    timers.advance(100 * LIMIT_MS);
    expect([seen.hangs, timers.pending]).toEqual([0, 0]);
  }
});
