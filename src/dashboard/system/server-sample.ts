import { signal } from "@preact/signals";
import { getThreadCount } from "../api/client.ts";
import { THREAD_STATUSES, type ApiThreadStatus } from "../api/records.ts";
import { showError } from "../app/notices.ts";
import { ApiKeyRequired, isForbidden } from "../api-errors.ts";
import { sendRequest, fetchJson } from "../requests.ts";
import { type MetricsSample, parseMetrics, SHARD_UP_METRIC } from "./prometheus-metrics.ts";

/** Milliseconds between two samples of the server's state. */
export const SAMPLE_INTERVAL_MS = 2_000;
/** The number of samples that are kept, which is enough for five minutes. */
export const MAX_SAMPLES = 150;

/**
 * Milliseconds after which the page stops waiting for a response: the next request may reach another process of the
 * server, which does not hang. Longer than the server itself waits for a shard.
 */
const POLL_TIMEOUT_MS = 10_000;
/** Milliseconds after which the page stops waiting for a count of threads, which takes long if there are very many. */
const COUNT_TIMEOUT_MS = 30_000;

export const pollTimeoutSignal = (): AbortSignal => AbortSignal.timeout(POLL_TIMEOUT_MS);

/** The server's state, read at one moment. */
export interface ServerSample {
  readonly version: string;
  readonly transport: string;
  /** The duration of the request to `/ok`, in milliseconds. */
  readonly latency: number;
}

/**
 * The numbers of threads. `threads`: in total; undefined if it is not known. `statuses`: in each status whose number is
 * known.
 */
export interface ThreadCounts {
  readonly threads: number | undefined;
  readonly statuses: readonly (readonly [status: ApiThreadStatus, count: number])[];
}

interface Info {
  readonly version: string;
  readonly heddle?: { readonly transport?: { readonly kind?: string } };
}

/** The metrics of the latest samples, oldest first. They are kept while another page is shown. */
export const metricsSamples = signal<readonly MetricsSample[]>([]);

/** Whether the server allows this user to read the metrics; null before the first response. */
export const areMetricsAllowed = signal<boolean | null>(null);

/**
 * Returns whether all shards have responded in the latest sample. While one does not, requests to all shards take long
 * and then fail.
 */
export const haveAllShardsAnswered = (): boolean =>
  metricsSamples.value
    .at(-1)
    ?.samples(SHARD_UP_METRIC)
    .every(({ value }) => value === 1) ?? true;

/** Resolves with the result of a read, or with undefined if it fails. A missing API key opens the key dialog. */
export async function resultOrUndefined<T>(reading: Promise<T>): Promise<T | undefined> {
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
    areMetricsAllowed.value = !isForbidden(cause);
    throw cause;
  }
}

function addSample(text: string): void {
  const sample = parseMetrics(text, performance.now());
  metricsSamples.value = [...metricsSamples.value, sample].slice(-MAX_SAMPLES);
}

export async function takeServerSample(): Promise<ServerSample> {
  const began = performance.now();
  const signal = pollTimeoutSignal();
  await fetchJson("ok", { signal });
  const latency = performance.now() - began;
  const [info] = await Promise.all([
    fetchJson<Info>("info", { signal }),
    resultOrUndefined(readMetrics(signal)),
  ]);
  return { version: info.version, transport: info.heddle?.transport?.kind ?? "?", latency };
}

/**
 * Counts the threads in total and in each status. Resolves with null, without counting, if a shard does not respond.
 */
export async function readThreadCounts(): Promise<ThreadCounts | null> {
  if (!haveAllShardsAnswered()) return null;
  const signal = AbortSignal.timeout(COUNT_TIMEOUT_MS);
  const [threads, ...counts] = await Promise.all([
    resultOrUndefined(getThreadCount({}, signal)),
    ...THREAD_STATUSES.map((status) => resultOrUndefined(getThreadCount({ status }, signal))),
  ]);
  return {
    threads,
    statuses: THREAD_STATUSES.flatMap((status, i) => {
      const count = counts[i];
      return count === undefined ? [] : [[status, count] as const];
    }),
  };
}
