import { cancel } from "./thread/admission.ts";
import type { Cell } from "./thread/live-thread.ts";

/**
 * Leaves what is in progress to the next start: noted in the records, so that the attempt does not count against its run. A run
 * whose end is on its way to storage is no longer in progress: that is waited for. Runs of `cutOff` end: their
 * clients wanted them to end with their connections, which the stop closes.
 */
export async function leave(cells: readonly Cell[], cutOff: ReadonlySet<string>): Promise<void> {
  const live = cells.filter(({ alive }) => alive);
  const waiting = live.flatMap((cell) => {
    const ids = cutOff.size === 0 ? [] : [...cell.record.queue, ...cell.delayed.keys()];
    return ids.filter((id) => cutOff.has(id)).map((id) => cancel(cell, id, "interrupt", null));
  });
  await Promise.allSettled([
    ...waiting,
    ...live.map(({ attempt }) => attempt?.leave(cutOff.has(attempt.id))),
  ]);
  await Promise.allSettled(live.map((cell) => cell.tail));
  for (const cell of live) {
    cell.alive = false;
    cell.attempt?.revoke();
    cell.attempt?.sink.abandon();
    cell.actor?.stop();
  }
}
