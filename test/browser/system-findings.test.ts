import { describe, expect, test } from "vitest";
import type { ServerMetricsHistory, WebhookDeliveryRow } from "../../src/dashboard/api/records.ts";
import { healthWarningsOf } from "../../src/dashboard/system/health-warnings.ts";
import { hourSeriesOf } from "../../src/dashboard/system/metric-series.ts";
import { axisTimesOf } from "../../src/dashboard/system/time-axis.ts";

const MINUTE = 60_000;
const T = Date.UTC(2026, 0, 1);

/** A history whose figures have these last values; an entry every 10 seconds. */
function historyOf(figures: ServerMetricsHistory["figures"]): ServerMetricsHistory {
  const longest = Math.max(0, ...Object.values(figures).map(({ length }) => length));
  const times = Array.from({ length: longest }, (_, i) => new Date(T + i * 10_000).toISOString());
  return { interval_seconds: 10, times, figures };
}
const found = (figures: ServerMetricsHistory["figures"], pending: readonly WebhookDeliveryRow[] = []) =>
  healthWarningsOf({ history: historyOf(figures), pending, clockSkewMs: 0 });

const webhook = (row: Partial<WebhookDeliveryRow>): WebhookDeliveryRow => ({
  id: "w",
  run_id: "r",
  thread_id: "t",
  url: "https://hooks.test/a",
  status: "pending",
  attempts: 1,
  created_at: new Date(T).toISOString(),
  last_status: null,
  last_error: null,
  ...row,
});

describe("what is unusual", () => {
  test("is nothing on a quiet server, and on one of which nothing is known yet", () => {
    expect(found({})).toEqual([]);
    expect(
      found({
        runs_ended_per_second: [null, 2, 3],
        runs_failed_per_second: [null, 0, 0],
        runs_queued: [0, 4, 0],
        run_wait_p99_seconds: [null, 0.02, null],
        event_loop_lag_max_seconds: [null, 0.01, 0.02],
        memory_bytes: [9e7, 1e8, 1.2e8],
        webhooks_dead: [0, 0, 0],
      }),
    ).toEqual([]);
  });

  test("is a server that takes no webhooks: which one, how many wait for it, and what it does", () => {
    const refused = { last_error: "connect ECONNREFUSED 127.0.0.1:9" };
    const answered = {
      url: "https://other.test:8443/b",
      last_status: 503,
      last_error: "The receiver answered 503",
    };
    const pending = [
      webhook(refused),
      webhook(refused),
      webhook(refused),
      webhook(answered),
      webhook({ url: "/own", last_error: "timed out" }),
      webhook({ url: "https://new.test/", attempts: 0 }),
    ];
    expect(found({}, pending)).toEqual([
      "3 webhooks to hooks.test are being retried: connection refused.",
      "1 webhook to other.test:8443 is being retried: status 503.",
      "1 webhook to this server is being retried: timed out.",
    ]);
    expect(
      found(
        {},
        Array.from({ length: 100 }, () => webhook(refused)),
      ),
    ).toEqual(["At least 100 webhooks to hooks.test are being retried: connection refused."]);
  });

  test("are runs and requests that failed in the last five minutes, and webhooks that were given up", () => {
    const old = Array.from({ length: 30 }, () => 0);
    expect(
      found({
        runs_ended_per_second: [9, ...old.slice(1), 1],
        runs_failed_per_second: [9, ...old.slice(1), 0.3],
        requests_failed_per_second: [0.1],
        webhooks_dead: [0, 2],
      }),
    ).toEqual([
      "3 of 10 runs failed in the last 5 minutes.",
      "1 request failed (5xx) in the last 5 minutes.",
      "2 undelivered webhooks (dead letters): see the list below.",
    ]);
  });

  test("are a queue that does not empty, a long wait, a standstill, and memory that grows", () => {
    expect(
      found({
        runs_queued: [0, 3, 5, 5, 6, 7, 8, 9],
        run_wait_p99_seconds: [4.2, null],
        event_loop_lag_max_seconds: [0.64],
        memory_bytes: [1e8, 1.1e8, 3e8, 6e8],
      }),
    ).toEqual([
      "9 runs are queued; the queue has not been empty for 1 m 0 s.",
      "The queue time of runs was up to 4.20 s in the last minute.",
      "The event loop was blocked for 640 ms in the last minute. A node may run long synchronous code.",
      "Memory grew from 95 MB to 572 MB within the hour.",
    ]);
  });

  test("is no process whose memory is missing in earlier values, because it was started again", () => {
    const memory_bytes = [3e8, 3e8, 3e8, 6e8, 6e8, 6e8];
    expect(found({ memory_bytes, shards_counted: [1, 1, 1, 2, 2, 2] })).toEqual([]);
    expect(found({ memory_bytes, shards_counted: [2, 2, 2, 2, 2, 2] })).toHaveLength(1);
  });
});

describe("the charts of the last hour", () => {
  const live = (title: string, values: readonly (number | null)[]) => ({
    title,
    unit: String,
    times: values.map((_, i) => T + 15_000 + i * 2_000),
    values,
    note: "",
    isBad: false,
  });

  test("go on with what the page has seen since the server's last entry, moved to the page's clock", () => {
    const history = historyOf({ runs_running: [1, 2, 3] });
    const [chart] = hourSeriesOf([live("Runs in progress", [7, 8, 9, 10])], {
      history,
      pending: [],
      clockSkewMs: 0,
    });
    expect(chart?.times).toEqual([0, 10_000, 20_000, 21_000].map((ms) => T + ms));
    expect([chart?.values, chart?.now]).toEqual([[1, 2, 3, 10], 10]);
    const [moved] = hourSeriesOf([live("Runs in progress", [7])], {
      history,
      pending: [],
      clockSkewMs: -MINUTE,
    });
    expect(moved?.times).toEqual([-60_000, -50_000, -40_000, 15_000].map((ms) => T + ms));
  });

  test("have the waits of runs once one has waited, and failures below the whole", () => {
    const charts = (figures: ServerMetricsHistory["figures"]) =>
      hourSeriesOf([live("Runs ended", []), live("Queued runs", []), live("Memory", [])], {
        history: historyOf(figures),
        pending: [],
        clockSkewMs: 0,
      });
    const figures = { runs_ended_per_second: [null, 2], runs_failed_per_second: [null, 1] };
    expect(charts(figures).map(({ title }) => title)).toEqual(["Runs ended", "Queued runs", "Memory"]);
    expect(charts(figures)[0]?.below).toEqual({ values: [null, 1], isBad: true });
    const waits = charts({ run_wait_p50_seconds: [0, null], run_wait_p99_seconds: [0.02, null] })[2];
    expect(waits).toMatchObject({ title: "Queue time", values: [0.02, null], now: 0.02 });
  });

  test("have at most four round times on their axis, none at its edges", () => {
    const span = (from: number, to: number) => ({ from: T + from * MINUTE, to: T + to * MINUTE, name: "" });
    const minutes = (from: number, to: number) => axisTimesOf(span(from, to)).map((at) => (at - T) / MINUTE);
    expect(minutes(-60, 0)).toEqual([-45, -30, -15]);
    expect(minutes(1, 11)).toEqual([5, 10]);
    expect(minutes(0, 1)).toEqual([]);
  });
});
