import type { ServerHistory, WebhookRow } from "../api/records.ts";

/** The largest number of pending webhooks read. */
export const MAX_DELIVERIES = 100;

/** The server's metrics of the last hour, and the webhooks that are pending now. */
export interface LastHourMetrics {
  readonly history: ServerHistory;
  /** Milliseconds by which the page's clock is ahead of the server's; 0 if the difference is too small to be seen in a chart. */
  readonly clockSkewMs: number;
  /** The pending webhooks that were created last. */
  readonly pending: readonly WebhookRow[];
}
