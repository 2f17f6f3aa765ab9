import { expect, test } from "vitest";
import { DurationHistogram } from "../../src/model/duration-histogram.ts";
import { type HistoryReading, MetricsHistory } from "../../src/metrics/metrics-history.ts";
import { Timers } from "../http/support.ts";

const START = Date.UTC(2026, 0, 1);

function kept(read: () => HistoryReading) {
  let now = 0;
  const timers = new Timers();
  const clock = { now: () => START + now, mono: () => now };
  const history = new MetricsHistory({ clock, scheduler: timers, read });
  history.start();
  return {
    history,
    timers,
    /** Lets seconds pass. `lateMs`: the timer of the last one fires that much too late. */
    pass(seconds: number, lateMs = 0) {
      for (let i = 1; i <= seconds; i++) {
        now += i === seconds ? 1_000 + lateMs : 1_000;
        timers.advance(1_000);
      }
    },
  };
}

test("there is an entry every ten seconds: levels as they are, counters as their growth per second", () => {
  let runs = 5;
  const { history, pass } = kept(() => ({ runs_queued: runs * 2, runs_ended_per_second: runs }));
  expect(history.toRecord()).toMatchObject({
    interval_seconds: 10,
    times: ["2026-01-01T00:00:00.000Z"],
    figures: { runs_queued: [10], runs_ended_per_second: [null], storage_bytes: [null] },
  });
  pass(9);
  runs = 25;
  expect(history.toRecord().times).toHaveLength(1);
  pass(1);
  pass(10);
  expect(history.toRecord()).toMatchObject({
    times: ["2026-01-01T00:00:00.000Z", "2026-01-01T00:00:10.000Z", "2026-01-01T00:00:20.000Z"],
    figures: { runs_queued: [10, 50, 50], runs_ended_per_second: [null, 2, 0] },
  });
});

test("it reaches back one hour, and takes no more memory after that", () => {
  let n = 0;
  const { history, pass } = kept(() => ({ runs_queued: n++ }));
  pass(3_700);
  const { times, figures } = history.toRecord();
  expect([times.length, times[0], times.at(-1)]).toEqual([
    360,
    "2026-01-01T00:01:50.000Z",
    "2026-01-01T01:01:40.000Z",
  ]);
  expect([figures.runs_queued[0], figures.runs_queued.at(-1)]).toEqual([11, 370]);
});

test("the event loop's lag is the longest since the entry before", () => {
  const { history, pass } = kept(() => ({}));
  pass(4, 300);
  pass(6, 20);
  pass(10);
  expect(history.toRecord().figures.event_loop_lag_max_seconds).toEqual([null, 0.3, 0]);
});

test("after a standstill of minutes there is one entry, with the rate over all of it", () => {
  let runs = 0;
  const { history, pass } = kept(() => ({ runs_ended_per_second: runs }));
  runs = 100;
  pass(1, 99_000);
  pass(10);
  expect(history.toRecord().figures.runs_ended_per_second).toEqual([null, 1, 0]);
});

test("closed, it has no timer", () => {
  const { history, timers } = kept(() => ({}));
  expect(timers.pending).toBe(1);
  history.close();
  expect(timers.pending).toBe(0);
});

test("a quantile of durations is that of those since a copy, and at most a third too high", () => {
  const counts = new DurationHistogram();
  expect(counts.quantile(0.5)).toBeUndefined();
  for (let i = 0; i < 50; i++) counts.add(100_000);
  const before = counts.copy();
  for (let ms = 1; ms <= 1_000; ms++) counts.add(ms);
  const since = counts.since(before);
  for (const [share, ms] of [
    [0.5, 500],
    [0.99, 990],
  ] as const) {
    expect(since.quantile(share)).toBeGreaterThanOrEqual(ms);
    expect(since.quantile(share)).toBeLessThan(ms * 1.31);
  }
  const none = new DurationHistogram();
  none.add(0);
  none.add(-5);
  none.add(1e12);
  expect(none.quantile(0.6)).toBe(0);
  expect(none.quantile(1)).toBeGreaterThan(10_000_000);
});
