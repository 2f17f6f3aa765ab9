import { ServiceError } from "../../src/model/errors.ts";
import type { RunRecord } from "../../src/model/run.ts";
import type { Eventually } from "../../src/ports/eventually.ts";
import type { LiveThread } from "./live-thread.ts";

/**
 * Reads the unended runs of a thread that is being loaded; synchronously if the storage answers synchronously. Calls
 * `queued` for each run that waits in the queue.
 */
export function loadUnendedRuns(liveThread: LiveThread, queued: (run: RunRecord) => void): Eventually<void> {
  const { active, queue, delayed } = liveThread.record;
  // Most threads have no unended runs, so nothing has to be read.
  if (active === null && queue.length === 0 && delayed === null) return undefined;
  const waiting = new Set(delayed?.map(({ run }) => run));
  return load([active ?? [], queue, ...waiting].flat(), 0);

  function load(runs: readonly string[], from: number): Eventually<void> {
    for (let i = from; i < runs.length; i++) {
      const id = runs[i] as string;
      const run = liveThread.deps.journal.run(liveThread.key, id);
      if (run instanceof Promise) {
        return run.then((record) => {
          put(id, record);
          return load(runs, i + 1);
        });
      }
      put(id, run);
    }
    return undefined;
  }

  function put(id: string, run: RunRecord | undefined): void {
    if (run === undefined) {
      throw new ServiceError("journal.damaged", `Run ${id} of thread ${liveThread.key.thread} is missing`);
    }
    if (waiting.has(id)) return void liveThread.delayed.set(id, run);
    liveThread.runs.set(id, run);
    if (id !== active) queued(run);
  }
}
