import { describe, expect, test } from "vitest";
import { chartSeriesOf, counterGrowth } from "../../src/dashboard/system/metric-series.ts";
import { type MetricsSample, parseMetrics } from "../../src/dashboard/system/prometheus-metrics.ts";
import { shardRowsOf, silentShardWarnings } from "../../src/dashboard/system/shard-rows.ts";

interface ShownProcess {
  readonly shard: number;
  readonly node?: string;
  readonly ended: number;
  readonly lagSum?: number;
  readonly lagCount?: number;
}

/** The metrics of a server with these processes, read at this second. `silent`: shards that do not answer. */
function sampleOf(
  second: number,
  processes: readonly ShownProcess[],
  silent: readonly number[] = [],
): MetricsSample {
  const lines = processes.flatMap(({ shard, node, ended, lagSum = 0, lagCount = 0 }) => {
    const labels = `shard="${shard}"${node === undefined ? "" : `,node="${node}"`}`;
    return [
      `heddle_runs_ended_total{graph="a",status="success",${labels}} ${ended}`,
      `heddle_runs_running{${labels}} ${shard + 1}`,
      `heddle_runs_queued{${labels}} ${10 * (shard + 1)}`,
      `heddle_actors{state="idle",${labels}} 3`,
      `process_resident_memory_bytes{${labels}} ${(shard + 1) * 1_000_000}`,
      `process_start_time_seconds{${labels}} ${1_000 + shard}`,
      `heddle_event_loop_lag_seconds_sum{${labels}} ${lagSum}`,
      `heddle_event_loop_lag_seconds_count{${labels}} ${lagCount}`,
      `heddle_shard_up{shard="${shard}"} 1`,
    ];
  });
  const missing = silent.map((shard) => `heddle_shard_up{shard="${shard}"} 0`);
  return parseMetrics([...lines, ...missing].join("\n"), second * 1_000);
}

const ended = (sample: MetricsSample) => sample.sum("heddle_runs_ended_total");

describe("the growth of a counter of several processes", () => {
  test("leaves out a process that is missing in one of the samples, and one that was started again", () => {
    const [both, one, again] = [
      sampleOf(0, [
        { shard: 0, ended: 100 },
        { shard: 1, ended: 5_000 },
      ]),
      sampleOf(2, [{ shard: 0, ended: 110 }], [1]),
      sampleOf(4, [
        { shard: 0, ended: 130 },
        { shard: 1, ended: 5_002 },
      ]),
    ];
    expect(counterGrowth(both, one, ended)).toBe(10);
    expect(counterGrowth(one, again, ended)).toBe(20);
    expect(counterGrowth(both, again, ended)).toBe(32);
    const restarted = sampleOf(6, [
      { shard: 0, ended: 131 },
      { shard: 1, ended: 0 },
    ]);
    expect(counterGrowth(again, restarted, ended)).toBe(1);
    const charts = chartSeriesOf([both, one, again], undefined);
    expect(charts.find(({ title }) => title === "Runs ended")).toMatchObject({
      values: [null, 5, 10],
      note: "5,132 since server start",
    });
  });

  test("is not known if no process is in both samples", () => {
    const [before, now] = [
      sampleOf(0, [{ shard: 0, ended: 1 }], [1]),
      sampleOf(2, [{ shard: 1, ended: 9 }], [0]),
    ];
    expect(counterGrowth(before, now, ended)).toBeNull();
  });

  test("is that of the whole server if it has one process", () => {
    const plain = (at: number, count: number) =>
      parseMetrics(`heddle_runs_ended_total{graph="a"} ${count}`, at);
    expect(counterGrowth(plain(0, 3), plain(1, 5), ended)).toBe(2);
    expect(counterGrowth(plain(0, 3), plain(1, 1), ended)).toBeNull();
  });
});

test("levels, also those of a label, are added up over all processes", () => {
  const sample = sampleOf(0, [
    { shard: 0, ended: 0 },
    { shard: 1, ended: 0 },
  ]);
  expect(sample.sum("heddle_runs_running")).toBe(3);
  expect(sample.of("heddle_actors", "state", "idle")).toBe(6);
  expect(sample.of("heddle_actors", "state", "busy")).toBeUndefined();
});

describe("the table of shards", () => {
  test("has the figures of each, and marks one that does not answer, with the node that had it", () => {
    const samples = [
      sampleOf(0, [
        { shard: 0, node: "a", ended: 0, lagSum: 1, lagCount: 10 },
        { shard: 1, node: "b", ended: 0 },
      ]),
      sampleOf(2, [{ shard: 0, node: "a", ended: 0, lagSum: 1.5, lagCount: 20 }], [1]),
    ];
    const rows = shardRowsOf(samples);
    expect(rows).toEqual([
      {
        shard: "0",
        node: "a",
        figures: {
          since: new Date(1_000_000).toISOString(),
          running: 1,
          queued: 10,
          memory: 1_000_000,
          lag: 0.05,
        },
      },
      { shard: "1", node: "b", figures: undefined },
    ]);
    expect(silentShardWarnings(rows)).toEqual(["Shard 1 does not answer."]);
    expect(shardRowsOf(samples.slice(0, 1)).map(({ figures }) => figures?.lag)).toEqual([null, null]);
  });

  test("is empty for a server with one process, and before the first sample", () => {
    expect(shardRowsOf([parseMetrics("heddle_runs_running 1", 0)])).toEqual([]);
    expect(shardRowsOf([])).toEqual([]);
  });
});
