import { signal } from "@preact/signals";
import { getThreadCount } from "../api/client.ts";
import { THREAD_STATUSES, type ApiThreadStatus } from "../api/records.ts";
import { showError } from "../app/notices.ts";
import { ApiKeyRequired, isRefused } from "../api-errors.ts";
import { sendRequest, fetchJson } from "../requests.ts";
import { type MetricsSample, parseMetrics, SHARD_UP } from "./prometheus-metrics.ts";

/** Milliseconds between two samples. */
export const SAMPLE_INTERVAL_MS = 2_000;
/** The number of samples kept: five minutes. */
export const MAX_SAMPLES = 150;

/**
 * Milliseconds after which a read of this page is given up. If a process of the server hangs, a request may have reached it; the next one
 * probably reaches another process. It is longer than the server waits for a shard.
 */
const POLL_TIMEOUT_MS = 10_000;
/** Milliseconds after which counting threads is given up. It takes long if there are very many. */
const COUNT_TIMEOUT_MS = 30_000;

export const pollTimeout = (): AbortSignal => AbortSignal.timeout(POLL_TIMEOUT_MS);

/** The latest sample of the server's state. */
export interface ServerSample {
  readonly version: string;
  readonly transport: string;
  /** Milliseconds: the duration of the request to `/ok`. */
  readonly latency: number;
}

/** The numbers of threads. Undefined, or left out: not known. */
export interface ThreadCounts {
  readonly threads: number | undefined;
  readonly statuses: readonly (readonly [status: ApiThreadStatus, count: number])[];
}

interface Info {
  readonly version: string;
  readonly heddle?: { readonly transport?: { readonly kind?: string } };
}

/** The metrics of the last samples, oldest first. They stay when another page is shown. */
export const metricsSamples = signal<readonly MetricsSample[]>([]);

/** Whether the server gives the metrics to this user; null: not known yet. */
export const areMetricsAllowed = signal<boolean | null>(null);

/** Whether all shards have answered in the last sample. If not, requests that concern all shards fail, and take long. */
export const haveAllShardsAnswered = (): boolean =>
  metricsSamples.value
    .at(-1)
    ?.samples(SHARD_UP)
    .every(({ value }) => value === 1) ?? true;

/** Resolves with undefined if the request fails. A missing key opens the key dialog. */
export async function settled<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (cause) {
    if (cause instanceof ApiKeyRequired) showError(cause);
    return undefined;
  }
}

async function readMetrics(signal: AbortSignal): Promise<void> {
  try {
    const response = await sendRequest("metrics", { signal });
    addSample(await response.text());
    areMetricsAllowed.value = true;
  } catch (cause) {
    areMetricsAllowed.value = !isRefused(cause);
    throw cause;
  }
}

function addSample(text: string): void {
  const sample = parseMetrics(text, performance.now());
  metricsSamples.value = [...metricsSamples.value, sample].slice(-MAX_SAMPLES);
}

export async function takeSample(): Promise<ServerSample> {
  const began = performance.now();
  const signal = pollTimeout();
  await fetchJson("ok", { signal });
  const latency = performance.now() - began;
  const [info] = await Promise.all([fetchJson<Info>("info", { signal }), settled(readMetrics(signal))]);
  return { version: info.version, transport: info.heddle?.transport?.kind ?? "?", latency };
}

/** Counts the threads, which takes longer than the metrics if there are many threads. Resolves with null if a shard does not answer. */
export async function readThreadCounts(): Promise<ThreadCounts | null> {
  if (!haveAllShardsAnswered()) return null;
  const signal = AbortSignal.timeout(COUNT_TIMEOUT_MS);
  const [threads, ...counts] = await Promise.all([
    settled(getThreadCount({}, signal)),
    ...THREAD_STATUSES.map((status) => settled(getThreadCount({ status }, signal))),
  ]);
  return {
    threads,
    statuses: THREAD_STATUSES.flatMap((status, i) => {
      const count = counts[i];
      return count === undefined ? [] : [[status, count] as const];
    }),
  };
}
