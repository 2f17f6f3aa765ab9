import { useState } from "preact/hooks";
import { hrefOf } from "../app/page-location.ts";
import { errorMessage } from "../app/notices.ts";
import { LoadFailure } from "../components/empty-state.tsx";
import { formatDuration } from "../components/duration.ts";
import { StatusBadge } from "../components/status-badge.tsx";
import { TimeSeriesChart } from "./time-series-chart.tsx";
import { DeadLetterList } from "./dead-letter-list.tsx";
import {
  SAMPLE_INTERVAL_MS,
  MAX_SAMPLES,
  type ServerSample,
  takeSample,
  metricsSamples,
} from "./server-sample.ts";
import { usePolling } from "./use-polling.ts";
import { chartSeriesOf } from "./metric-series.ts";

/** Milliseconds until the second sample, because rates need two. */
const SOON = 500;
/** The number of samples in one minute. */
const FIRST = 30;

/** The state of the server, now and over the last minutes. */
export function SystemPage() {
  const [look, setLook] = useState<ServerSample | null>(null);
  const [error, setError] = useState<string | null>(null);
  usePolling(
    async () => {
      try {
        setLook(await takeSample());
        setError(null);
      } catch (cause) {
        setError(errorMessage(cause));
      }
    },
    SAMPLE_INTERVAL_MS,
    SOON,
  );
  // The first minute fills the whole chart; then the span grows to the number of samples kept.
  const span = Math.max(FIRST, Math.min(MAX_SAMPLES, metricsSamples.value.length));
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
      {error !== null && <LoadFailure text={error} />}
      {look !== null && look.threads !== undefined && (
        <p class="pad statuses">
          <a href={hrefOf([])}>
            {look.threads.toLocaleString("en")} {look.threads === 1 ? "thread" : "threads"}
          </a>
          {look.statuses.map(([status, count]) => (
            <span class="inline" key={status}>
              <StatusBadge of={status} small /> {count.toLocaleString("en")}
            </span>
          ))}
        </p>
      )}
      <div class="pad tiles charts">
        {chartSeriesOf(metricsSamples.value, look?.threads).map((series) => (
          <TimeSeriesChart key={series.title} series={series} span={span} />
        ))}
      </div>
      <DeadLetterList count={dead} />
    </article>
  );
}
