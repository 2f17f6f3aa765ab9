import type { IdleThreads } from "./idle-threads.ts";
import type { ActorMetrics, RunTotals } from "./run-totals.ts";
import type { LiveThread } from "./thread/live-thread.ts";

export function registryMetrics(
  { woken, withdrawn, waits, graphs }: RunTotals,
  liveThreads: ReadonlyMap<string, LiveThread>,
  { size: idle, passivated }: Pick<IdleThreads<LiveThread>, "size" | "passivated">,
  now: Pick<ActorMetrics, "waking" | "queued" | "waiting" | "stateBytes">,
): ActorMetrics {
  return {
    ...now,
    busy: liveThreads.size - idle,
    idle,
    get running() {
      let count = 0;
      for (const { attempt } of liveThreads.values()) if (attempt !== null) count++;
      return count;
    },
    woken,
    passivated,
    withdrawn,
    waits,
    graphs,
  };
}
