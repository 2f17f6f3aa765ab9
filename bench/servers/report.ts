/**
 * The control servers' side of the bench's IPC: reports the port, responds to `stats`, and ends with the bench.
 * Heddle's server adds figures of its own.
 */
export interface ServerStats {
  /** CPU seconds since the process started. */
  readonly cpu: number;
  readonly rss: number;
  readonly heap: number;
  /** Bytes that V8 has reserved for its heap, used or not, and for buffers outside it. */
  readonly reserved?: number;
  /** The number of active timers. */
  readonly timers: number;
  /** Heddle only: what its storage has written so far. */
  readonly storage?: {
    readonly batches: number;
    readonly synced: number;
    readonly ops: number;
    readonly bytes: number;
  };
  /** Heddle only: bytes of LevelDB's cache and log in memory. */
  readonly level?: number;
  /** Heddle only: live actors. */
  readonly live?: number;
}

export function ownStats(): ServerStats {
  const { user, system } = process.cpuUsage();
  const memory = process.memoryUsage();
  const reserved = memory.heapTotal + memory.external;
  const timers = process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;
  return { cpu: (user + system) / 1e6, rss: memory.rss, heap: memory.heapUsed, reserved, timers };
}

export function reportOver(port: number, stats: () => ServerStats, stop: () => void | Promise<void>): void {
  process.on("message", (message: { ask?: string }) => {
    if (message.ask === "stats") {
      process.send?.({ stats: stats() });
    } else if (message.ask === "collect") {
      // Only with --expose-gc: memory rows measure reachable objects, without garbage.
      (globalThis as { gc?: () => void }).gc?.();
      process.send?.({ stats: stats() });
    } else if (message.ask === "stop") {
      void Promise.resolve(stop()).finally(() => process.exit(0));
    }
  });
  process.on("disconnect", () => process.exit(0));
  process.send?.({ port });
}
