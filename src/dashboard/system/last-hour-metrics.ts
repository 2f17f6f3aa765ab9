import { signal } from "@preact/signals";
import { getMetricsHistory, listWebhookDeliveries } from "../api/client.ts";
import { type LastHourMetrics, MAX_PENDING_WEBHOOKS } from "./metric-series.ts";
import { haveAllShardsAnswered, pollTimeoutSignal, resultOrUndefined } from "./server-sample.ts";

/** Milliseconds between two reads of the history: as often as the server adds values to it. */
export const HISTORY_INTERVAL_MS = 10_000;
/**
 * The latest read of the server's history; null before the first read, or if the server does not provide the history.
 */
export const lastHour = signal<LastHourMetrics | null>(null);

/** Reads the history from the server, and sets {@link lastHour}. Changes nothing if the read fails. */
export async function refreshLastHour(): Promise<void> {
  const history = await resultOrUndefined(getMetricsHistory(pollTimeoutSignal()));
  if (history === undefined) return;
  const skew = Date.now() - Date.parse(history.times.at(-1) ?? "");
  const clockSkewMs = Math.abs(skew) > 2 * HISTORY_INTERVAL_MS ? skew : 0;
  const count = history.figures["webhooks_pending"]?.at(-1) ?? 0;
  const pending =
    count > 0 && haveAllShardsAnswered()
      ? await resultOrUndefined(listWebhookDeliveries("pending", MAX_PENDING_WEBHOOKS, pollTimeoutSignal()))
      : undefined;
  lastHour.value = { history, clockSkewMs, pending: pending ?? [] };
}
