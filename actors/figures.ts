import type { Idle } from "./idle.ts";
import type { Figures, Tally } from "./tally.ts";
import type { Cell } from "./thread/cell.ts";

/** The figures of a registry. */
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
