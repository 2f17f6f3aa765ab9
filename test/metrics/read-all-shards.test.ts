import { expect, onTestFinished, test } from "vitest";
import { createMetrics, type MetricsDeps } from "../../src/app/metrics.ts";
import { Exposition } from "../../src/metrics/exposition.ts";
import { mergeStatuses } from "../../src/metrics/merged-status.ts";
import { counter, gauge } from "../../src/metrics/metric-family.ts";
import { type MultiProcessMetrics, readAllShards } from "../../src/metrics/read-all-shards.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { systemScheduler } from "../../src/platform/scheduler.ts";
import { DurationHistogram } from "../../src/model/duration-histogram.ts";
import type { MetricsHistoryRecord, ShardMetrics, ShardStatus } from "../../src/ports/shard-metrics.ts";
import { Lines } from "../stream/support.ts";

const NO_HISTORY: MetricsHistoryRecord = { interval_seconds: 10, times: [], figures: {} };

interface Place {
  readonly shard: number | undefined;
  readonly node?: string;
  /** The metrics of each other shard; undefined for one that does not answer. */
  readonly others?: ReadonlyMap<number, ShardMetrics | undefined>;
}

const multiProcessMetricsOf = ({ shard, node, others = new Map() }: Place): MultiProcessMetrics => ({
  shard,
  node,
  readOthers: async (read) =>
    new Map(
      await Promise.all(
        [...others].map(async ([number, metrics]) => [number, metrics && (await read(metrics))] as const),
      ),
    ),
});

/** The metrics of a process that has ended this many runs. */
function processOf(ended: number, place: Place) {
  const families = [
    counter("runs_total", "Runs", () => [[{ graph: "a" }, ended]], "graph"),
    gauge("memory_bytes", "Memory", () => 100 + ended),
  ];
  const exposition = new Exposition(families, new Lines(), multiProcessMetricsOf(place));
  const metrics: ShardMetrics = {
    snapshot: () => exposition.snapshot(),
    history: async () => NO_HISTORY,
    status: async () => statusOf(ended),
  };
  return { exposition, metrics };
}

const statusOf = (n: number, storage_bytes: number | null = 1_000 + n): ShardStatus => ({
  pid: 10 + n,
  version: "1.0.0",
  uptime_seconds: n,
  runs_running: n,
  runs_queued: 2 * n,
  actors_live: 3 * n,
  connections: 4 * n,
  memory_bytes: 100 * n,
  storage_bytes,
});

/** The values of an exposition, by the text before them. */
const seriesOf = (body: string): Record<string, number> =>
  Object.fromEntries(
    body
      .split("\n")
      .filter((line) => line !== "" && !line.startsWith("#"))
      .map((line) => [line.slice(0, line.lastIndexOf(" ")), Number(line.slice(line.lastIndexOf(" ") + 1))]),
  );

test("each series has its shard and its node; a shard that does not answer has only a 0", async () => {
  const others = new Map([
    [0, processOf(5, { shard: 0, node: "a" }).metrics],
    [2, undefined],
  ]);
  const { exposition } = processOf(7, { shard: 1, node: "b", others });
  const { body } = await exposition.render();
  expect(seriesOf(body)).toEqual({
    'runs_total{graph="a",shard="0",node="a"}': 5,
    'runs_total{graph="a",shard="1",node="b"}': 7,
    'memory_bytes{shard="0",node="a"}': 105,
    'memory_bytes{shard="1",node="b"}': 107,
    'heddle_shard_up{shard="0"}': 1,
    'heddle_shard_up{shard="1"}': 1,
    'heddle_shard_up{shard="2"}': 0,
  });
  expect(body.match(/^# TYPE .*$/gm)).toEqual([
    "# TYPE runs_total counter",
    "# TYPE memory_bytes gauge",
    "# TYPE heddle_shard_up gauge",
  ]);
});

test("a process without a shard has figures, and is no shard", async () => {
  const others = new Map([[0, processOf(5, { shard: 0 }).metrics]]);
  const { body } = await processOf(1, { shard: undefined, others }).exposition.render();
  expect(seriesOf(body)).toMatchObject({
    'memory_bytes{shard="none"}': 101,
    'memory_bytes{shard="0"}': 105,
    'heddle_shard_up{shard="0"}': 1,
  });
  expect(body.match(/^heddle_shard_up\{/gm)).toHaveLength(1);
});

test("the figures of all shards are added up, without those that do not answer; the shards are in order", async () => {
  const others = new Map([
    [2, processOf(5, { shard: 2 }).metrics],
    [0, undefined],
  ]);
  const place = { shard: 1, others };
  const { metrics } = processOf(1, place);
  const answers = await readAllShards(multiProcessMetricsOf(place), metrics, (one) => one.status());
  expect(mergeStatuses(answers)).toEqual({
    totals: {
      runs_running: 6,
      runs_queued: 12,
      actors_live: 18,
      connections: 24,
      memory_bytes: 600,
      storage_bytes: 2_006,
    },
    shards: [
      { shard: 0, up: false },
      { shard: 1, up: true, ...statusOf(1) },
      { shard: 2, up: true, ...statusOf(5) },
    ],
  });
});

test("the size of the storage is not known if no shard knows it", () => {
  const { totals } = mergeStatuses(new Map([[0, statusOf(1, null)]]));
  expect(totals.storage_bytes).toBeNull();
  const some = mergeStatuses(
    new Map([
      [0, statusOf(1, null)],
      [1, statusOf(2, 50)],
    ]),
  );
  expect(some.totals.storage_bytes).toBe(50);
});

test("who asks for the status or the history of all processes meanwhile shares a reading; who asks later gets another", async () => {
  let asked = 0;
  const answers: (() => void)[] = [];
  const multiProcess: MultiProcessMetrics = {
    shard: undefined,
    node: undefined,
    readOthers: async () => {
      asked++;
      await new Promise<void>((resolve) => answers.push(resolve));
      return new Map([[0, undefined]]);
    },
  };
  const metrics = createMetrics({
    about: { version: "1", transport: "node" },
    storage: { replication: () => undefined, size: async () => undefined },
    outbox: { count: async () => ({ pending: 0, dead: 0 }) },
    system: { figures: { waits: new DurationHistogram() } },
    multiProcess,
    clock: systemClock,
    scheduler: systemScheduler,
    logger: new Lines(),
  } as unknown as MetricsDeps);
  onTestFinished(() => metrics.close());
  for (const read of [metrics.status as () => Promise<unknown>, metrics.history]) {
    asked = 0;
    const [one, two] = [read(), read()];
    expect(asked).toBe(1);
    answers.shift()?.();
    // oxlint-disable-next-line no-await-in-loop -- one after the other
    expect(await one).toBe(await two);
    const later = read();
    expect(asked).toBe(2);
    answers.shift()?.();
    // oxlint-disable-next-line no-await-in-loop -- one after the other
    expect(await later).not.toBe(await one);
  }
});
