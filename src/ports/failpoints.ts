/** Named places in the write path and in recovery at which a test can stop, delay or kill the server. */
export interface Failpoints {
  /** Called with the place's name. A returned promise is awaited. Nothing happens unless a test injects it. */
  hit(place: Failpoint): void | Promise<void>;
}

export type Failpoint = "commit.before" | "commit.after" | "recovery.before" | "recovery.thread";

export const noFailpoints: Failpoints = { hit: () => undefined };
