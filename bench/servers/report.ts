/**
 * The control servers' side of the bench's IPC: says on which port it listens, answers `stats`, ends with the bench.
 * Heddle's own server adds what only it knows.
 */
export interface ServerStats {
  /** CPU seconds since the process began. */
  readonly cpu: number;
  readonly rss: number;
  readonly heap: number;
  /** Bytes that V8 has taken for its heap, used or not, and for buffers outside it. */
  readonly reserved?: number;
  /** Timers that are armed. */
  readonly timers: number;
  /** Of Heddle: what its storage has written so far. */
  readonly storage?: {
    readonly batches: number;
    readonly synced: number;
    readonly ops: number;
    readonly bytes: number;
  };
  /** Of Heddle: bytes of LevelDB's cache and log in memory. */
  readonly level?: number;
  /** Of Heddle: live actors. */
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
      // Started with --expose-gc: memory rows want what is reachable, not what is lying about.
      (globalThis as { gc?: () => void }).gc?.();
      process.send?.({ stats: stats() });
    } else if (message.ask === "stop") {
      void Promise.resolve(stop()).finally(() => process.exit(0));
    }
  });
  process.on("disconnect", () => process.exit(0));
  process.send?.({ port });
}
