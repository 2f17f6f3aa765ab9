import { withdrawWaiting } from "./thread/admission.ts";
import type { Cell } from "./thread/live-thread.ts";

/**
 * Parks the runs in progress for the next start of the server. The records note it, so that the attempt does not
 * count against the run. A run whose end is being stored is no longer in progress: its write is awaited. Runs in
 * `cutOff` end: their clients asked for an end with their connections, which the shutdown closes. Nobody is notified
 * of these ends: a client must not take an end that the shutdown made for the result of its run.
 */
export async function leave(cells: readonly Cell[], cutOff: ReadonlySet<string>): Promise<void> {
  const live = cells.filter(({ alive }) => alive);
  const waiting = live.flatMap((cell) => {
    const ids = cutOff.size === 0 ? [] : [...cell.record.queue, ...cell.delayed.keys()];
    return ids.filter((id) => cutOff.has(id)).map((id) => withdrawWaiting(cell, id, "interrupt", null));
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
