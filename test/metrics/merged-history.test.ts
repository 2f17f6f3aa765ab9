import { expect, test } from "vitest";
import { mergeHistories } from "../../src/metrics/merged-history.ts";
import type { MetricsHistoryRecord } from "../../src/ports/shard-metrics.ts";

const START = Date.UTC(2026, 0, 1);
const at = (seconds: number): string => new Date(START + seconds * 1_000).toISOString();

const historyOf = (
  seconds: readonly number[],
  figures: MetricsHistoryRecord["figures"],
): MetricsHistoryRecord => ({ interval_seconds: 10, times: seconds.map(at), figures });

test("counts and rates are added up; of waits, lag and busy share, the highest stands for all", () => {
  const { figures, times, interval_seconds } = mergeHistories([
    historyOf([2, 12], {
      runs_running: [1, 2],
      runs_ended_per_second: [null, 4],
      memory_bytes: [100, 110],
      run_wait_p50_seconds: [0.1, 0.2],
      run_wait_p99_seconds: [null, 3],
      event_loop_lag_max_seconds: [null, 0.5],
      event_loop_busy_ratio: [null, 0.25],
    }),
    historyOf([5, 15], {
      runs_running: [3, 5],
      runs_ended_per_second: [null, 1.5],
      memory_bytes: [200, 220],
      run_wait_p50_seconds: [null, 0.1],
      run_wait_p99_seconds: [null, 4],
      event_loop_lag_max_seconds: [null, 0.25],
      event_loop_busy_ratio: [null, 0.75],
    }),
  ]);
  expect([interval_seconds, times]).toEqual([10, [at(5), at(15)]]);
  expect(figures).toMatchObject({
    runs_running: [4, 7],
    runs_ended_per_second: [null, 5.5],
    memory_bytes: [300, 330],
    run_wait_p50_seconds: [0.1, 0.2],
    run_wait_p99_seconds: [null, 4],
    event_loop_lag_max_seconds: [null, 0.5],
    event_loop_busy_ratio: [null, 0.75],
    // Neither process knows it, as a version before this figure would not.
    storage_bytes: [null, null],
    shards_counted: [2, 2],
  });
});

test("entries that are taken some milliseconds late are neither left out nor taken twice", () => {
  const ms = (all: readonly number[]) => all.map((one) => one / 1_000);
  // Each of these crosses the end of a ten-second slot, in both directions.
  const early = ms([9_990, 20_010, 29_995, 40_020, 49_999]);
  const running = [1, 2, 3, 4, 5];
  const only = historyOf(early, { runs_running: running });
  expect(mergeHistories([only])).toMatchObject({
    times: only.times,
    figures: { runs_running: running, shards_counted: [1, 1, 1, 1, 1] },
  });
  const other = historyOf(ms([3_000, 13_001, 23_000, 33_900, 43_000]), {
    runs_running: [10, 20, 30, 40, 50],
  });
  expect(mergeHistories([only, other]).figures.runs_running).toEqual([11, 22, 33, 44, 55]);
});

test("a process that was started again is in the entries since its start", () => {
  const { figures } = mergeHistories([
    historyOf([1, 11, 21, 31], { memory_bytes: [5, 5, 5, 5] }),
    historyOf([24, 34], { memory_bytes: [3, 3] }),
  ]);
  expect(figures.memory_bytes).toEqual([5, 5, 8, 8]);
  expect(figures.shards_counted).toEqual([1, 1, 2, 2]);
});

test("the newest entry waits for all processes, but not for one that is blocked", () => {
  const first = historyOf([1, 11, 21], { runs_running: [1, 1, 1] });
  const slower = historyOf([8, 18], { runs_running: [2, 2] });
  expect(mergeHistories([first, slower]).figures.runs_running).toEqual([3, 3]);
  const blocked = historyOf([1], { runs_running: [2] });
  expect(mergeHistories([first, blocked])).toMatchObject({
    times: [at(1), at(11), at(21)],
    figures: { runs_running: [3, 1, 1], shards_counted: [2, 1, 1] },
  });
});

test("it has an hour at most, also where one process stood still for a time", () => {
  const seconds = (from: number, count: number) => Array.from({ length: count }, (_, i) => from + i * 10);
  const gap = historyOf([...seconds(1, 180), ...seconds(3_601, 180)], {});
  const { times } = mergeHistories([gap, historyOf(seconds(1_801, 360), {})]);
  expect([times.length, times[0], times.at(-1)]).toEqual([360, at(1_801), at(5_391)]);
});

test("it is empty if no process has answered, or none has an entry", () => {
  for (const histories of [[], [historyOf([], { runs_running: [] })]])
    expect(mergeHistories(histories)).toMatchObject({
      interval_seconds: 10,
      times: [],
      figures: { runs_running: [], shards_counted: [] },
    });
});
