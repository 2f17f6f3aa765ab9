import { withdrawWaiting } from "./thread/admission.ts";
import type { LiveThread } from "./thread/live-thread.ts";

/**
 * Parks the runs in progress: when the server starts again, it continues them. Their records are marked as parked, so
 * that the attempt does not count against the limit of attempts. A run whose end is being stored is no longer in
 * progress: only the storing of its end is awaited. Runs in `cutOff` are not continued, because their clients asked for
 * the run to end with the connection, which the shutdown closes: a waiting run ends now, a run in progress when the
 * server starts again. Nobody is notified of these ends: a client must not mistake an end that the shutdown caused for
 * the result of its run.
 */
export async function parkRuns(
  liveThreads: readonly LiveThread[],
  cutOff: ReadonlySet<string>,
): Promise<void> {
  const live = liveThreads.filter(({ alive }) => alive);
  const waiting = live.flatMap((liveThread) => {
    const ids = cutOff.size === 0 ? [] : [...liveThread.record.queue, ...liveThread.delayed.keys()];
    return ids.filter((id) => cutOff.has(id)).map((id) => withdrawWaiting(liveThread, id, "interrupt", null));
  });
  await Promise.allSettled([...waiting, ...live.map(({ attempt }) => attempt?.park(cutOff.has(attempt.id)))]);
  await Promise.allSettled(live.map((liveThread) => liveThread.lastWrite));
  for (const liveThread of live) {
    liveThread.alive = false;
    liveThread.attempt?.revoke();
    liveThread.attempt?.sink.abandon();
    liveThread.actor?.stop();
  }
}
