import { withdrawWaiting } from "./thread/admission.ts";
import type { LiveThread } from "./thread/live-thread.ts";

/**
 * Parks the runs in progress, for the next start of the server to continue. Runs in `cutOff` end instead, because their
 * clients asked for the run to end with the connection, which the shutdown closes. Nobody is notified of these ends: a
 * client must not mistake an end that the shutdown caused for the result of its run.
 */
export async function parkRuns(
  liveThreads: readonly LiveThread[],
  cutOff: ReadonlySet<string>,
): Promise<void> {
  const live = liveThreads.filter(({ alive }) => alive);
  // A waiting run in `cutOff` ends now, a run in progress in `cutOff` at the next start.
  const waiting = live.flatMap((liveThread) => {
    const ids = cutOff.size === 0 ? [] : [...liveThread.record.queue, ...liveThread.delayed.keys()];
    return ids.filter((id) => cutOff.has(id)).map((id) => withdrawWaiting(liveThread, id, "interrupt", null));
  });
  await Promise.allSettled([...waiting, ...live.map(({ attempt }) => attempt?.park(cutOff.has(attempt.id)))]);
  // Also waits for the ends of runs that are being stored.
  await Promise.allSettled(live.map((liveThread) => liveThread.lastWrite));
  for (const liveThread of live) {
    liveThread.alive = false;
    liveThread.attempt?.revoke();
    liveThread.attempt?.sink.abandon();
    liveThread.actor?.stop();
  }
}
