import { formatDuration } from "../components/duration.ts";
import type { MetricsSample } from "./prometheus-metrics.ts";
import type { ServerMetricsHistory, WebhookDeliveryRow } from "../api/records.ts";

/** The largest number of pending webhooks that are read. */
export const MAX_PENDING_WEBHOOKS = 100;

/** The server's metrics of the last hour, and its pending webhooks. */
export interface LastHourMetrics {
  readonly history: ServerMetricsHistory;
  /**
   * Milliseconds by which the page's clock is ahead of the server's; 0 if the difference would be too small to see in
   * a chart.
   */
  readonly clockSkewMs: number;
  /** At most {@link MAX_PENDING_WEBHOOKS} pending webhooks. */
  readonly pending: readonly WebhookDeliveryRow[];
}

/** The data of one chart: a value for each time, null where the value is not known. */
export interface ChartSeries {
  readonly title: string;
  /** The times of `values`, in epoch milliseconds. */
  readonly times: readonly number[];
  /** Returns a value as text, with its unit. */
  readonly unit: (value: number) => string;
  readonly values: readonly (number | null)[];
  /** The current value; absent if it is the last one in `values`. */
  readonly now?: number | null;
  /** A second line, such as the failed runs below all runs. `isBad`: whether it is drawn in the colour of errors. */
  readonly below?: { readonly values: readonly (number | null)[]; readonly isBad: boolean };
  /** Further text below the chart, about the current value. */
  readonly note: string;
  readonly isBad: boolean;
}

const whole = (value: number): string => Math.round(value).toLocaleString("en");

/** Formats a rate per second, such as `3.4/s`. */
export function formatPerSecond(value: number): string {
  return `${value < 10 && value > 0 ? value.toFixed(1) : whole(value)}/s`;
}

export function formatBytes(value: number): string {
  const units = ["B", "KB", "MB", "GB", "TB"];
  const power = value < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log(value) / Math.log(1024)));
  const scaled = value / 1024 ** power;
  return `${scaled >= 10 || power === 0 ? Math.round(scaled) : scaled.toFixed(1)} ${units[power]}`;
}

export const formatSeconds = (seconds: number): string => {
  const value = seconds * 1_000;
  return value < 10 ? `${value.toFixed(1)} ms` : formatDuration(value);
};

const wait = (seconds: number): string => formatDuration(seconds * 1_000);

const percent = (value: number): string => `${whole(value * 100)} %`;

type ReadFigure = (figures: MetricsSample) => number | undefined;

/**
 * Returns how much a counter has grown between two samples, summed over the server's processes. Leaves out processes
 * that are in only one of the samples, or whose counter has fallen, because they were restarted. Null if no process is
 * left.
 */
export function counterGrowth(before: MetricsSample, now: MetricsSample, read: ReadFigure): number | null {
  let sum: number | null = null;
  for (const [key, { sample }] of now.processes) {
    const earlier = before.processes.get(key);
    const [from, to] = [earlier && read(earlier.sample), read(sample)];
    if (from !== undefined && to !== undefined && to >= from) sum = (sum ?? 0) + to - from;
  }
  return sum;
}

/**
 * Returns the growth of a counter per second between consecutive samples. Null for the first sample, and where the
 * growth is not known.
 */
export function counterRates(looks: readonly MetricsSample[], read: ReadFigure): readonly (number | null)[] {
  return looks.map((now, i) => {
    const before = looks[i - 1];
    if (before === undefined || now.at <= before.at) return null;
    const growth = counterGrowth(before, now, read);
    return growth === null ? null : (growth * 1_000) / (now.at - before.at);
  });
}

const levels = (looks: readonly MetricsSample[], read: ReadFigure): readonly (number | null)[] =>
  looks.map((figures) => read(figures) ?? null);

/**
 * Returns, for each sample, the growth of the counter `part` divided by the growth of the counter `of`; 0 if `of` has
 * not grown.
 */
function shares(
  looks: readonly MetricsSample[],
  part: ReadFigure,
  of: ReadFigure,
): readonly (number | null)[] {
  const [parts, wholes] = [counterRates(looks, part), counterRates(looks, of)];
  return parts.map((value, i) => {
    const all = wholes[i] ?? null;
    return value === null || all === null ? null : all === 0 ? 0 : value / all;
  });
}

/** Returns the mean event-loop lag between consecutive samples, in seconds. */
export const eventLoopLags = (looks: readonly MetricsSample[]): readonly (number | null)[] =>
  shares(
    looks,
    (figures) => figures.sum("heddle_event_loop_lag_seconds_sum"),
    (figures) => figures.sum("heddle_event_loop_lag_seconds_count"),
  );

const last = (values: readonly (number | null)[]): number | null => values.at(-1) ?? null;
const formatted = (value: number | null, unit: (value: number) => string): string =>
  value === null ? "–" : unit(value);

/** Returns the charts of the page's samples. Charts of metrics that the server does not report are left out. */
export function chartSeriesOf(
  looks: readonly MetricsSample[],
  threads: number | undefined,
): readonly ChartSeries[] {
  const now = looks.at(-1);
  if (now === undefined) return [];
  const ended = (wanted?: string): ReadFigure => {
    const name = "heddle_runs_ended_total";
    return (f) => f.sum(name, (labels) => wanted === undefined || labels.get("status") === wanted) ?? 0;
  };
  const busyAndIdle: ReadFigure = (f) => f.sum("heddle_actors", (labels) => labels.get("state") !== "waking");
  const live = busyAndIdle(now) ?? 0;
  const at = (name: string, label: string, value: string) => now.of(name, label, value) ?? 0;
  const failures = last(counterRates(looks, (f) => (ended("error")(f) ?? 0) + (ended("timeout")(f) ?? 0)));
  const active: ReadFigure = (f) => f.sum("heddle_event_loop_active_seconds_total");
  const idle: ReadFigure = (f) => f.sum("heddle_event_loop_idle_seconds_total");
  const loop = last(shares(looks, active, (f) => (active(f) ?? 0) + (idle(f) ?? 0)));
  const written = last(counterRates(looks, (f) => f.sum("heddle_storage_written_bytes_total")));
  const batches = last(counterRates(looks, (f) => f.sum("heddle_storage_batches_total")));
  const cpu = counterRates(looks, (f) => f.sum("process_cpu_seconds_total"));
  const errors = last(
    counterRates(looks, (f) => f.sum("heddle_http_requests_total", (l) => l.get("status") === "5xx") ?? 0),
  );
  const dead = at("heddle_webhooks", "status", "dead");
  const times = looks.map(({ at }) => performance.timeOrigin + at);
  const all: readonly Omit<ChartSeries, "times">[] = [
    {
      title: "Runs ended",
      unit: formatPerSecond,
      values: counterRates(looks, ended()),
      note: `${whole(ended()(now) ?? 0)} since server start${failures ? `, ${formatPerSecond(failures)} failing` : ""}`,
      isBad: (failures ?? 0) > 0,
    },
    {
      title: "Runs in progress",
      unit: whole,
      values: levels(looks, (f) => f.sum("heddle_runs_running")),
      note: `${whole(now.sum("heddle_runs_started_total") ?? 0)} started`,
      isBad: false,
    },
    {
      title: "Queued runs",
      unit: whole,
      values: levels(looks, (f) => f.sum("heddle_runs_queued")),
      note: `${whole(now.sum("heddle_runs_waiting_for_slot") ?? 0)} held back by limits`,
      isBad: false,
    },
    {
      title: "Threads in memory",
      unit: whole,
      values: levels(looks, busyAndIdle),
      note: `${whole(at("heddle_actors", "state", "idle"))} idle${
        threads === undefined ? "" : `; ${whole(Math.max(0, threads - live))} only in storage`
      }`,
      isBad: false,
    },
    {
      title: "Event-loop lag",
      unit: formatSeconds,
      values: eventLoopLags(looks),
      note: `max ${worst(looks)}; busy ${formatted(loop, percent)} of the time`,
      isBad: false,
    },
    {
      title: "Processor",
      unit: percent,
      values: cpu,
      note: "100 % is one core",
      isBad: false,
    },
    {
      title: "Memory",
      unit: formatBytes,
      values: levels(looks, (f) => f.sum("process_resident_memory_bytes")),
      note: `JS heap: ${formatBytes(now.sum("nodejs_heap_size_used_bytes") ?? 0)}`,
      isBad: false,
    },
    {
      title: "Storage",
      unit: formatBytes,
      values: levels(looks, (f) => f.sum("heddle_storage_size_bytes")),
      note: `${formatted(written, (value) => `${formatBytes(value)}/s`)} written in ${formatted(batches, formatPerSecond)} batches`,
      isBad: false,
    },
    {
      title: "Connections",
      unit: whole,
      values: levels(looks, (f) => f.sum("heddle_connections")),
      note: `${whole(at("heddle_connections", "kind", "sse"))} event streams, ${whole(
        at("heddle_connections", "kind", "websocket"),
      )} WebSockets, ${whole(at("heddle_connections", "kind", "inspect"))} inspectors`,
      isBad: false,
    },
    {
      title: "Requests",
      unit: formatPerSecond,
      values: counterRates(looks, (f) => f.sum("heddle_http_requests_total")),
      note: errors ? `${formatPerSecond(errors)} of them failed (5xx)` : "none failed (5xx)",
      isBad: (errors ?? 0) > 0,
    },
    {
      title: "Pending webhooks",
      unit: whole,
      values: levels(looks, (f) => f.of("heddle_webhooks", "status", "pending")),
      note: "to be delivered or retried",
      isBad: false,
    },
    {
      title: "Undelivered webhooks",
      unit: whole,
      values: levels(looks, (f) => f.of("heddle_webhooks", "status", "dead")),
      note: "dead letters: no longer retried",
      isBad: dead > 0,
    },
  ];
  const known = all.filter(({ values }) => values.some((value) => value !== null) || looks.length < 2);
  return known.map((series) => ({ ...series, times }));
}

/** The names of metrics in the server's history, by the title of the chart that shows them. */
const FIGURES: {
  readonly [title: string]: { readonly figure: string; readonly below?: string; readonly isBad?: boolean };
} = {
  "Runs ended": { figure: "runs_ended_per_second", below: "runs_failed_per_second", isBad: true },
  "Runs in progress": { figure: "runs_running" },
  "Queued runs": { figure: "runs_queued" },
  "Threads in memory": { figure: "actors_live" },
  "Event-loop lag": { figure: "event_loop_lag_max_seconds" },
  Processor: { figure: "cpu_ratio" },
  Memory: { figure: "memory_bytes" },
  Storage: { figure: "storage_bytes" },
  Connections: { figure: "connections" },
  Requests: { figure: "requests_per_second", below: "requests_failed_per_second", isBad: true },
  "Pending webhooks": { figure: "webhooks_pending" },
  "Undelivered webhooks": { figure: "webhooks_dead" },
};

/**
 * Returns the charts over the last hour: the values of the server's history, followed by those of the page's newer
 * samples. Adds a chart of the queue times, which only the history contains.
 */
export function hourSeriesOf(
  live: readonly ChartSeries[],
  { history, clockSkewMs }: LastHourMetrics,
): readonly ChartSeries[] {
  const times = history.times.map((time) => Date.parse(time) + clockSkewMs);
  const valuesOf = (figure: string): readonly (number | null)[] =>
    history.figures[figure] ?? times.map(() => null);
  const series = live.map((one): ChartSeries => {
    const { figure, below, isBad = false } = FIGURES[one.title] ?? { figure: "" };
    const since = one.times.findIndex((time) => time > (times.at(-1) ?? 0));
    const newer = <T>(list: readonly T[]) => (since < 0 ? [] : list.slice(since));
    return {
      ...one,
      times: [...times, ...newer(one.times)],
      values: [...valuesOf(figure), ...newer(one.values)],
      now: last(one.values),
      ...(below !== undefined && {
        below: { values: [...valuesOf(below), ...newer(one.values).map(() => null)], isBad },
      }),
    };
  });
  const [half, most] = [valuesOf("run_wait_p50_seconds"), valuesOf("run_wait_p99_seconds")];
  const known = (values: readonly (number | null)[]) => values.findLast((value) => value !== null) ?? null;
  const waited = known(most);
  if (waited === null) return series;
  const waits: ChartSeries = {
    title: "Queue time",
    times,
    unit: wait,
    values: most,
    now: waited,
    below: { values: half, isBad: false },
    note: `p99; p50: ${wait(known(half) ?? 0)}`,
    isBad: false,
  };
  const place = series.findIndex(({ title }) => title === "Queued runs") + 1;
  return [...series.slice(0, place), waits, ...series.slice(place)];
}

/** Returns, as text, an upper bound of the longest event-loop lag between the last two samples. */
function worst(looks: readonly MetricsSample[]): string {
  const name = "heddle_event_loop_lag_seconds_bucket";
  const [before, now] = looks.slice(-2);
  if (before === undefined || now === undefined) return "–";
  const grown = (bound: string) =>
    counterGrowth(before, now, (figures) => figures.of(name, "le", bound)) ?? 0;
  const all = grown("+Inf");
  if (all <= 0) return "–";
  const bounds = now.samples(name).flatMap(({ labels }) => labels.get("le") ?? []);
  const bound = bounds.find((one) => grown(one) === all);
  return bound === undefined || bound === "+Inf" ? "> 5 s" : `< ${whole(Number(bound) * 1_000)} ms`;
}
