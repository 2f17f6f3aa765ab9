import { isTerminal } from "../src/model/run.ts";
import type { Append } from "../src/ports/journal.ts";
import type { RunWithLostEnd } from "../src/ports/lost-run-ends.ts";
import type { RestoredEnd } from "./thread-system-interface.ts";
import { threadUnavailable, type LiveThread } from "./thread/live-thread.ts";
import { endedRun, makeDeliveriesWithoutState } from "./thread/record-changes.ts";

/** The part of an append that stores the end of a run, or, after a rollback, deletes the run. */
export function lostRunEndChange(
  { run, end }: RunWithLostEnd,
  now: number,
): Pick<Append, "runs" | "forget" | "outbox"> {
  if (end === null) return { forget: [run.run_id] };
  const { status, error, next_event, wasStored } = end;
  const runs = [endedRun(run, status, now, error, next_event)];
  return wasStored ? { runs } : { runs, ...makeDeliveriesWithoutState(runs) };
}

/** Stores the missing end of a run, and notifies the run's readers and waiting requests. */
export async function restoreRunEnd(liveThread: LiveThread, found: RunWithLostEnd): Promise<RestoredEnd> {
  const { run_id: id } = found.run;
  for (;;) {
    if (!liveThread.alive) throw threadUnavailable();
    await liveThread.lastWrite;
    const { seq } = liveThread.record;
    const run = await liveThread.deps.journal.run(liveThread.key, id);
    // If the thread was changed during the read, everything is read again.
    if (liveThread.record.seq !== seq || liveThread.inFlight > 0) continue;
    if (
      run === undefined ||
      isTerminal(run.status) ||
      liveThread.runs.has(id) ||
      liveThread.delayed.has(id)
    ) {
      return undefined;
    }
    const end = lostRunEndChange({ ...found, run }, liveThread.deps.clock.now());
    await liveThread.write({ kind: "repaired", durable: true, ...end }, (thread) => thread, true);
    liveThread.deps.sinks.dismiss(liveThread.key, id);
    liveThread.owner.runEnded(liveThread, id, { run: end.runs?.[0] });
    return found.end?.status ?? "forgotten";
  }
}
