import { useState } from "preact/hooks";
import { currentLocation, hrefOf } from "../app/page-location.ts";
import { errorMessage } from "../app/notices.ts";
import { THREAD_STATUS_TEXTS } from "../live/status-texts.ts";
import { ErrorAlert } from "../components/empty-state.tsx";
import { formatDuration } from "../components/duration.ts";
import { StatusBadge } from "../components/status-badge.tsx";
import { Tabs } from "../components/tabs.tsx";
import type { TimeSpan } from "./time-axis.ts";
import { TimeSeriesChart } from "./time-series-chart.tsx";
import { DeadLetterList } from "./dead-letter-list.tsx";
import { healthWarningsOf } from "./health-warnings.ts";
import { HISTORY_INTERVAL_MS, lastHour, refreshLastHour } from "./last-hour-metrics.ts";
import {
  areMetricsAllowed,
  readThreadCounts,
  metricsSamples,
  SAMPLE_INTERVAL_MS,
  type ServerSample,
  takeServerSample,
  type ThreadCounts,
} from "./server-sample.ts";
import { shardRowsOf, silentShardWarnings } from "./shard-rows.ts";
import { ShardTable } from "./shard-table.tsx";
import { usePolling } from "../components/use-polling.ts";
import { chartSeriesOf, hourSeriesOf } from "./metric-series.ts";

/** Milliseconds between the first two samples. Short, because the page can show rates only after two samples. */
const SECOND_SAMPLE_MS = 500;

/**
 * The longest (`most`) and shortest (`least`) time span of the charts, in milliseconds. Between them, the span is as
 * long as there are values.
 */
const SPANS = {
  hour: { most: 3_600_000, least: 600_000, name: "the last hour" },
  minutes: { most: 300_000, least: 60_000, name: "the last minutes" },
};

function spanOf({ most, least, name }: (typeof SPANS)["hour"], first: number | undefined): TimeSpan {
  const to = performance.timeOrigin + performance.now();
  return { from: to - Math.min(most, Math.max(least, to - (first ?? to))), to, name };
}

/**
 * The state of the server: its current values, those of the last minutes from the page's own samples, and those of the
 * last hour from the server's history.
 */
export function SystemPage() {
  const [look, setLook] = useState<ServerSample | null>(null);
  const [counts, setCounts] = useState<ThreadCounts | null>(null);
  const [error, setError] = useState<string | null>(null);
  usePolling(
    async () => {
      try {
        setLook(await takeServerSample());
        setError(null);
      } catch (cause) {
        setError(errorMessage(cause));
      }
    },
    SAMPLE_INTERVAL_MS,
    SECOND_SAMPLE_MS,
  );
  usePolling(async () => setCounts(await readThreadCounts()), SAMPLE_INTERVAL_MS, SECOND_SAMPLE_MS);
  usePolling(refreshLastHour, HISTORY_INTERVAL_MS);
  const shards = shardRowsOf(metricsSamples.value);
  const silent = silentShardWarnings(shards);
  const hour = lastHour.value;
  const isHour = hour !== null && currentLocation.value.query.get("span") !== "minutes";
  const live = chartSeriesOf(metricsSamples.value, counts?.threads);
  const charts = isHour ? hourSeriesOf(live, hour) : live;
  const span = spanOf(isHour ? SPANS.hour : SPANS.minutes, charts[0]?.times[0]);
  const dead = metricsSamples.value.at(-1)?.of("heddle_webhooks", "status", "dead") ?? 0;
  return (
    <article class="page system">
      <header class="head">
        <div class="which">
          <h2>System</h2>
          {look !== null && (
            <p class="dim">
              Heddle {look.version} over {look.transport}; answers in {formatDuration(look.latency)}
            </p>
          )}
        </div>
      </header>
      {error !== null && <ErrorAlert text={error} />}
      {areMetricsAllowed.value === false && (
        <p class="note">
          <span>
            Metrics and undelivered webhooks (dead letters) require an API key. Sign out, then sign in with an
            API key instead of your user token. A server has API keys if it was started with{" "}
            <code>HEDDLE_API_KEYS</code>.
          </span>
        </p>
      )}
      {counts !== null && counts.threads !== undefined && (
        <p class="pad statuses">
          <a href={hrefOf([])}>
            {counts.threads.toLocaleString("en")} {counts.threads === 1 ? "thread" : "threads"}
          </a>
          {counts.statuses.map(([status, count]) => (
            <span class="inline" key={status}>
              <StatusBadge of={status} words={THREAD_STATUS_TEXTS[status]} small />{" "}
              {count.toLocaleString("en")}
            </span>
          ))}
        </p>
      )}
      {(hour !== null || silent.length > 0) && (
        <Findings texts={[...silent, ...(hour === null ? [] : healthWarningsOf(hour))]} />
      )}
      {hour !== null && (
        <Tabs
          label="Time shown"
          current={isHour ? "hour" : "minutes"}
          tabs={[
            { id: "hour", title: "Last hour", href: hrefOf(["system"]) },
            { id: "minutes", title: "Last 5 minutes", href: hrefOf(["system"], { span: "minutes" }) },
          ]}
        />
      )}
      {areMetricsAllowed.value !== false && (
        <div class="pad tiles charts">
          {charts.map((series) => (
            <TimeSeriesChart key={series.title} series={series} span={span} />
          ))}
        </div>
      )}
      <ShardTable rows={shards} />
      {areMetricsAllowed.value === true && <DeadLetterList count={dead} />}
    </article>
  );
}

function Findings({ texts }: { readonly texts: readonly string[] }) {
  return (
    <section class="pad unusual" aria-labelledby="unusual-title">
      <h3 id="unusual-title">{texts.length === 0 ? "No warnings" : "Warnings"}</h3>
      {texts.length > 0 && (
        <ul>
          {texts.map((text) => (
            <li key={text}>{text}</li>
          ))}
        </ul>
      )}
    </section>
  );
}
