import type { ServerHistory, WebhookRow } from "../api/records.ts";

/** Pending webhooks read at most. */
export const MAX_DELIVERIES = 100;

export interface LastHour {
  readonly history: ServerHistory;
  /** Milliseconds that the page's clock is ahead of the server's, where the difference would be seen in a chart. */
  readonly clockSkewMs: number;
  /** The pending webhooks that were made last. */
  readonly pending: readonly WebhookRow[];
}
