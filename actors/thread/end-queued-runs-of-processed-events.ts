import type { JsonObject } from "../../src/model/json.ts";
import { changeRun, type RunRecord } from "../../src/model/run.ts";
import { changeThread, type ThreadRecord } from "../../src/model/thread.ts";
import type { LiveThread } from "./live-thread.ts";
import { endedRun } from "./record-changes.ts";
import { removeWaitingRun } from "./run-withdrawal.ts";

/**
 * Makes the final records of queued runs whose events the machine of the run in progress has already processed. The
 * result of these runs is the state at `checkpoint`, which includes the events.
 */
export function endedRunsOfProcessedEvents(
  liveThread: LiveThread,
  ids: readonly string[],
  checkpoint: string | undefined,
): readonly RunRecord[] {
  if (ids.length === 0) return [];
  const now = liveThread.deps.clock.now();
  const { queue, active } = liveThread.record;
  const queued = ids.filter((id) => queue.includes(id));
  return queued
    .flatMap((id) => liveThread.runs.get(id) ?? [])
    .map((run) =>
      changeRun(endedRun(run, "success", now), {
        base_checkpoint: checkpoint ?? null,
        ...(active !== null && { kwargs: { ...run.kwargs, taken_by: active } }),
      }),
    );
}

/** The thread's record with the runs `ended` removed from its queue. */
export function threadWithoutQueued(thread: ThreadRecord, ended: readonly RunRecord[]): ThreadRecord {
  if (ended.length === 0) return thread;
  const gone = new Set(ended.map(({ run_id }) => run_id));
  return changeThread(thread, { queue: thread.queue.filter((id) => !gone.has(id)) });
}

/** Removes the ended runs from memory. Called when the append that ends them is submitted. */
export function removeRunsOfProcessedEvents(liveThread: LiveThread, ended: readonly RunRecord[]): void {
  for (const { run_id } of ended) {
    removeWaitingRun(liveThread, run_id);
    liveThread.actor?.send({ type: "RUN.WITHDRAWN", run: run_id });
  }
}

/**
 * Notifies readers and waiting requests that these runs have ended. Called when their ends are stored. `values`: the
 * state after the events of these runs.
 */
export function notifyEndOfProcessedEventRuns(
  liveThread: LiveThread,
  ended: readonly RunRecord[],
  values: JsonObject,
): void {
  const { deps, owner, key } = liveThread;
  for (const run of ended) {
    const totals = owner.totals.forGraph(run.graph_id);
    totals.started++;
    totals.success++;
    deps.sinks.dismiss(key, run.run_id);
    owner.runEnded(liveThread, run.run_id, { run, left: { values, waiting: null } });
  }
}
