/** Named points in the write path and in recovery at which a test can stop, delay or kill the server. */
export interface Failpoints {
  /** Called when the server reaches the point. A returned promise is awaited. Does nothing unless a test replaces it. */
  hit(place: Failpoint): void | Promise<void>;
}

export type Failpoint = "commit.before" | "commit.after" | "recovery.before" | "recovery.thread";

export const noFailpoints: Failpoints = { hit: () => undefined };
