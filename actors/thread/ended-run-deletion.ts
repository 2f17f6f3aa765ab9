import type { PendingTaskWrites } from "../../src/model/checkpoint.ts";
import { ServiceError } from "../../src/model/errors.ts";
import type { InterruptsByTask } from "../../src/model/interrupt.ts";
import type { RunRecord } from "../../src/model/run.ts";
import type { ThreadRecord } from "../../src/model/thread.ts";
import { timersAtCheckpoint, timersWith } from "../../src/model/machine-timer.ts";
import { writesBeforeRun, interruptsOfWrites } from "../run/writes-restored-by-rollback.ts";
import { threadUnavailable, type LiveThread } from "./live-thread.ts";
import { threadSituationOf } from "./thread-chart.ts";

const CHECKPOINTS_PER_READ = 64;

/**
 * The changes to a thread when the run that made its latest checkpoint is deleted: members of the thread's record, and
 * task writes.
 */
interface StatusWithoutRun {
  readonly checkpoint: string | null;
  readonly rest: "interrupted" | "idle";
  readonly interrupts: InterruptsByTask;
  readonly timers: ThreadRecord["timers"];
  /** The task writes from before the run, which are restored. */
  readonly writes: readonly PendingTaskWrites[];
}

/** Deletes a run that has ended, with its checkpoints. */
export async function deleteEndedRun(liveThread: LiveThread, run: RunRecord): Promise<void> {
  const { run_id: id } = run;
  for (;;) {
    const { actor } = liveThread;
    if (actor === undefined || !liveThread.alive) throw threadUnavailable();
    if (liveThread.runs.has(id) || liveThread.delayed.has(id)) {
      throw new ServiceError("run.conflict", "The run has not ended: cancel it first");
    }
    // A run in progress may build on this run's checkpoints.
    if (threadSituationOf(actor.getSnapshot().value) !== "resting") {
      throw new ServiceError("thread.busy", "Thread is busy: its runs can be deleted when it is idle");
    }
    const { seq } = liveThread.record;
    let standing: StatusWithoutRun | undefined;
    try {
      standing = await statusWithout(liveThread, run);
    } catch (cause) {
      if (liveThread.alive && liveThread.record.seq !== seq) continue;
      throw cause;
    }
    // If the thread was changed during the read, everything is read again.
    if (!liveThread.alive || liveThread.record.seq !== seq) continue;
    const { writes = [], ...stands } = standing ?? {};
    const now = liveThread.deps.clock.now();
    const stored = liveThread.write({ kind: "deleted", durable: true, forget: [id], writes }, (thread) => ({
      ...thread,
      ...stands,
      ...(standing && { state_updated_at: now, error: null }),
    }));
    liveThread.forget();
    if (standing !== undefined) actor.send({ type: "STATE.UPDATED", rest: standing.rest });
    liveThread.owner.activityChanged(liveThread);
    return stored;
  }
}

/** Finds the thread's status without the run; undefined: the status does not change. */
async function statusWithout(liveThread: LiveThread, run: RunRecord): Promise<StatusWithoutRun | undefined> {
  const { journal } = liveThread.deps;
  const { checkpoint, timers } = liveThread.record;
  if (checkpoint === null) return undefined;
  // The journal shows only what is stored, and the latest checkpoint may still be in flight.
  await liveThread.lastWrite;
  const latest = await journal.checkpoint(liveThread.key, "", checkpoint);
  if (latest?.run_id !== run.run_id) return undefined;
  for (let before = checkpoint; ;) {
    const page = await journal.history(liveThread.key, { ns: "", limit: CHECKPOINTS_PER_READ, before });
    const found = page.find(({ run_id }) => run_id !== run.run_id);
    if (found !== undefined) {
      const put = await writesBeforeRun(liveThread, run);
      const remainingWrites = new Map<string, PendingTaskWrites>();
      for (const writes of await journal.writes(liveThread.key, "", found.id))
        remainingWrites.set(writes.task, writes);
      for (const writes of put)
        if (writes.ns === "" && writes.checkpoint === found.id) remainingWrites.set(writes.task, writes);
      const rest = found.next.length > 0 ? "interrupted" : "idle";
      return {
        checkpoint: found.id,
        rest,
        interrupts: interruptsOfWrites(remainingWrites.values()),
        timers: timersAtCheckpoint(
          found,
          timersWith(timers, (timer) => timer.run === run.run_id, null),
        ),
        writes: put,
      };
    }
    const oldest = page.at(-1);
    if (oldest === undefined)
      return { checkpoint: null, rest: "idle", interrupts: {}, timers: null, writes: [] };
    before = oldest.id;
  }
}
