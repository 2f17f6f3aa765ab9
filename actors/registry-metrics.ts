import type { Idle } from "./idle-threads.ts";
import type { Figures, Tally } from "./run-counters.ts";
import type { Cell } from "./thread/live-thread.ts";

/** The current metrics of a registry. */
export function figuresOf(
  { woken, withdrawn, graphs }: Tally,
  cells: ReadonlyMap<string, Cell>,
  { size: idle, passivated }: Pick<Idle<Cell>, "size" | "passivated">,
  now: Pick<Figures, "waking" | "queued" | "waiting">,
): Figures {
  return {
    ...now,
    busy: cells.size - idle,
    idle,
    get running() {
      let count = 0;
      for (const { attempt } of cells.values()) if (attempt !== null) count++;
      return count;
    },
    woken,
    passivated,
    withdrawn,
    graphs,
  };
}
