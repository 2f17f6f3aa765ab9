import type { ServerMetricsHistory, WebhookDeliveryRow } from "../api/records.ts";
import { formatDuration } from "../components/duration.ts";
import { formatBytes } from "./metric-series.ts";
import { type LastHourMetrics, MAX_PENDING_WEBHOOKS } from "./metric-series.ts";

const FIVE_MINUTES_SECONDS = 300;
const ONE_MINUTE_SECONDS = 60;
/** A queue time of this many seconds or more is reported. */
const LONG_QUEUE_SECONDS = 1;
/** An event-loop lag of this many seconds or more is reported, because every client notices it. */
const LONG_LAG_SECONDS = 0.25;
/**
 * Memory is reported if it has grown by more than this factor, and by more than this number of bytes, within the last
 * hour.
 */
const MEMORY_GROWTH_FACTOR = 1.5;
const MEMORY_GROWTH_BYTES = 200 * 1024 * 1024;

/** Returns a sentence for each warning about the server. */
export function healthWarningsOf({ history, pending }: LastHourMetrics): readonly string[] {
  return [
    ...webhookFindings(pending),
    ...failureFindings(history),
    ...waitFindings(history),
    ...processFindings(history),
  ];
}

function webhookFindings(pending: readonly WebhookDeliveryRow[]): readonly string[] {
  const groups = new Map<
    string,
    { readonly host: string; readonly reason: string; readonly count: number }
  >();
  for (const delivery of pending) {
    if (delivery.attempts === 0) continue;
    const [host, reason] = [hostOf(delivery.url), reasonOf(delivery)];
    const group = `${host} ${reason}`;
    groups.set(group, { host, reason, count: (groups.get(group)?.count ?? 0) + 1 });
  }
  // If the limit was reached, there may be more webhooks than were read.
  const more = pending.length >= MAX_PENDING_WEBHOOKS ? "At least " : "";
  return [...groups.values()].map(({ host, reason, count }) => {
    const [webhooks, are] = count === 1 ? ["webhook", "is"] : ["webhooks", "are"];
    return `${more}${count} ${webhooks} to ${host} ${are} being retried: ${reason}.`;
  });
}

/** Returns the host of a URL, without user name and password. A URL that is only a path belongs to this server. */
const hostOf = (url: string): string => /^\w+:\/\/(?:[^/?#]*@)?([^/?#]+)/.exec(url)?.[1] ?? "this server";

function reasonOf({ last_status, last_error }: WebhookDeliveryRow): string {
  if (last_status !== null) return `status ${last_status}`;
  if (last_error === null) return "no answer";
  return last_error.includes("ECONNREFUSED") ? "connection refused" : last_error;
}

/** Returns the values of a metric in the last `seconds` seconds. Unknown values are left out. */
function recent(
  { interval_seconds, figures }: ServerMetricsHistory,
  name: string,
  seconds: number,
): number[] {
  const values = (figures[name] ?? []).slice(-Math.round(seconds / interval_seconds));
  return values.filter((value) => value !== null);
}

/**
 * Returns how often something has happened in the last `seconds` seconds, computed from its recorded rate per second.
 */
const countOf = (history: ServerMetricsHistory, name: string, seconds: number): number =>
  Math.round(recent(history, name, seconds).reduce((sum, rate) => sum + rate, 0) * history.interval_seconds);

function failureFindings(history: ServerMetricsHistory): readonly string[] {
  const failed = countOf(history, "runs_failed_per_second", FIVE_MINUTES_SECONDS);
  const ended = countOf(history, "runs_ended_per_second", FIVE_MINUTES_SECONDS);
  const refused = countOf(history, "requests_failed_per_second", FIVE_MINUTES_SECONDS);
  const dead = history.figures["webhooks_dead"]?.at(-1) ?? 0;
  return [
    ...(failed > 0 ? [`${failed} of ${Math.max(failed, ended)} runs failed in the last 5 minutes.`] : []),
    ...(refused > 0
      ? [`${refused} ${refused === 1 ? "request" : "requests"} failed (5xx) in the last 5 minutes.`]
      : []),
    ...(dead > 0
      ? [
          `${dead} undelivered ${dead === 1 ? "webhook (dead letter)" : "webhooks (dead letters)"}: see the list below.`,
        ]
      : []),
  ];
}

function waitFindings(history: ServerMetricsHistory): readonly string[] {
  const queued = recent(history, "runs_queued", ONE_MINUTE_SECONDS);
  const now = queued.at(-1) ?? 0;
  const isStanding = queued.length > 1 && queued.every((count) => count > 0);
  const wait = Math.max(0, ...recent(history, "run_wait_p99_seconds", ONE_MINUTE_SECONDS));
  return [
    ...(isStanding
      ? [
          `${now} ${now === 1 ? "run is" : "runs are"} queued; the queue has not been empty for ${formatDuration(standingFor(history))}.`,
        ]
      : []),
    ...(wait >= LONG_QUEUE_SECONDS
      ? [`The queue time of runs was up to ${formatDuration(wait * 1_000)} in the last minute.`]
      : []),
  ];
}

/** Returns for how many milliseconds the queue has not been empty, as far as the history shows. */
function standingFor({ interval_seconds, figures }: ServerMetricsHistory): number {
  const queued = figures["runs_queued"] ?? [];
  const empty = queued.findLastIndex((count) => count === 0);
  return (queued.length - 1 - Math.max(0, empty + 1)) * interval_seconds * 1_000;
}

/**
 * Returns the known values of the server's memory, oldest first. Values that count fewer or more shards than the
 * latest one are left out: a process that was restarted has lost its history, so its memory is missing in earlier
 * values.
 */
function memoryOf({ figures }: ServerMetricsHistory): number[] {
  const { memory_bytes: memory = [], shards_counted: counted } = figures;
  return memory.filter((_, i) => counted?.[i] === counted?.at(-1)).filter((value) => value !== null);
}

function processFindings(history: ServerMetricsHistory): readonly string[] {
  const lag = Math.max(0, ...recent(history, "event_loop_lag_max_seconds", ONE_MINUTE_SECONDS));
  const memory = memoryOf(history);
  const [before, now] = [Math.min(...memory.slice(0, memory.length / 2)), memory.at(-1) ?? 0];
  return [
    ...(lag >= LONG_LAG_SECONDS
      ? [
          `The event loop was blocked for ${formatDuration(lag * 1_000)} in the last minute. A node may run long synchronous code.`,
        ]
      : []),
    ...(now > before * MEMORY_GROWTH_FACTOR && now - before > MEMORY_GROWTH_BYTES
      ? [`Memory grew from ${formatBytes(before)} to ${formatBytes(now)} within the hour.`]
      : []),
  ];
}
