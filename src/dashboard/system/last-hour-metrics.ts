import type { ServerHistory, WebhookRow } from "../api/records.ts";

/** How many pending webhooks are read at most. */
export const MAX_DELIVERIES = 100;

/** The server's metrics of the last hour, and the webhooks that are pending now. */
export interface LastHourMetrics {
  readonly history: ServerHistory;
  /** Milliseconds that the page's clock is ahead of the server's, where the difference would be seen in a chart. */
  readonly clockSkewMs: number;
  /** The newest pending webhooks. */
  readonly pending: readonly WebhookRow[];
}
