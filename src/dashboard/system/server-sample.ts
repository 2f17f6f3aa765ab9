import { signal } from "@preact/signals";
import { getThreadCount } from "../api/client.ts";
import { THREAD_STATUSES, type ApiThreadStatus } from "../api/records.ts";
import { showError } from "../app/notices.ts";
import { ApiKeyRequired } from "../api-errors.ts";
import { sendRequest, fetchJson } from "../requests.ts";
import { type MetricsSample, parseMetrics } from "./prometheus-metrics.ts";

/** Milliseconds between two samples. */
export const SAMPLE_INTERVAL_MS = 2_000;
/** The number of samples kept: five minutes. */
export const MAX_SAMPLES = 150;

/** The latest sample of the server's state. */
export interface ServerSample {
  readonly version: string;
  readonly transport: string;
  /** Milliseconds: the duration of the request to `/ok`. */
  readonly latency: number;
  readonly threads: number | undefined;
  readonly statuses: readonly (readonly [status: ApiThreadStatus, count: number])[];
}

interface Info {
  readonly version: string;
  readonly heddle?: { readonly transport?: { readonly kind?: string } };
}

/** The metrics of the last samples, oldest first. They stay when another page is shown. */
export const metricsSamples = signal<readonly MetricsSample[]>([]);

/** Resolves with undefined if the request fails. A missing key opens the key dialog. */
export async function settled<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (cause) {
    if (cause instanceof ApiKeyRequired) showError(cause);
    return undefined;
  }
}

function addSample(text: string): void {
  const sample = parseMetrics(text, performance.now());
  metricsSamples.value = [...metricsSamples.value, sample].slice(-MAX_SAMPLES);
}

export async function takeSample(): Promise<ServerSample> {
  const began = performance.now();
  await fetchJson("ok");
  const latency = performance.now() - began;
  // The metrics are shown as soon as they are read, because the server needs longer to count many threads.
  const reading = settled(
    sendRequest("metrics")
      .then((response) => response.text())
      .then(addSample),
  );
  const [info, threads, ...counts] = await Promise.all([
    fetchJson<Info>("info"),
    settled(getThreadCount({})),
    ...THREAD_STATUSES.map((status) => settled(getThreadCount({ status }))),
  ]);
  await reading;
  return {
    version: info.version,
    transport: info.heddle?.transport?.kind ?? "?",
    latency,
    threads,
    statuses: THREAD_STATUSES.flatMap((status, i) => {
      const count = counts[i];
      return count === undefined ? [] : [[status, count] as const];
    }),
  };
}
