/** What a server process reports to the bench over IPC. Some figures come from Heddle only. */
export interface ServerStats {
  /** CPU seconds since the process started. */
  readonly cpu: number;
  readonly rss: number;
  readonly heap: number;
  /** Bytes that V8 has reserved for its heap, used or not, and bytes of buffers outside the heap. */
  readonly reserved?: number;
  /** The number of active timers. */
  readonly timers: number;
  /** Heddle only: what its storage has written since the start. */
  readonly storage?: {
    readonly batches: number;
    readonly synced: number;
    readonly ops: number;
    readonly bytes: number;
  };
  /** Heddle only: bytes of LevelDB's block cache and of its write buffers. */
  readonly level?: number;
  /** Heddle only: the number of actors in memory. */
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
      // `gc` exists only with --expose-gc, which the bench sets: rows about memory measure reachable objects, without
      // garbage.
      (globalThis as { gc?: () => void }).gc?.();
      process.send?.({ stats: stats() });
    } else if (message.ask === "stop") {
      void Promise.resolve(stop()).finally(() => process.exit(0));
    }
  });
  process.on("disconnect", () => process.exit(0));
  process.send?.({ port });
}
