import type { Cell } from "./thread/cell.ts";

/**
 * Leaves what is in progress to the next start: noted in the records, so that the attempt does not count against its run. A run
 * whose end is on its way to storage is no longer in progress: that is waited for.
 */
export async function leave(cells: readonly Cell[]): Promise<void> {
  const live = cells.filter(({ alive }) => alive);
  await Promise.allSettled(live.map((cell) => cell.attempt?.leave()));
  await Promise.allSettled(live.map((cell) => cell.tail));
  for (const cell of live) {
    cell.alive = false;
    cell.attempt?.revoke();
    cell.attempt?.sink.abandon();
    cell.actor?.stop();
  }
}
