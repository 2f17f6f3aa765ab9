import type { RunRecord } from "../src/model/run.ts";
import type { ThreadKey, NewThreadValues } from "../src/model/thread.ts";
import type { Eventually } from "../src/ports/eventually.ts";
import { DeferredRunStarts, type RunStartQueue } from "./begin-queue.ts";
import type { RunDraft } from "./thread-system-interface.ts";
import { admitRun, cancelThreadRun } from "./thread/admission.ts";
import type { LiveThread } from "./thread/live-thread.ts";

type BatchRuns = readonly { readonly key: ThreadKey; readonly draft: RunDraft }[];

interface Batch {
  /**
   * Returns the error that `admitAll` throws if the run at `index` is not admitted. `cause`: why the run was refused or
   * could not be stored.
   */
  refused(index: number, cause: unknown): unknown;
  /** @throws ServiceError `server.draining` if the server is shutting down */
  refuseWhenDraining(): void;
  wake(key: ThreadKey, start: NewThreadValues | undefined): Eventually<LiveThread>;
  /** Keeps the thread in memory until `release` is called. */
  claim(liveThread: LiveThread): void;
  release(liveThread: LiveThread): void;
  letGo(liveThread: LiveThread): void;
  /** The queue that begins the admitted runs. */
  readonly starts: RunStartQueue;
}

/**
 * Admits runs to new threads, all in one turn of the event loop, so that no shutdown can come between them. If any run
 * is refused or cannot be stored, all runs are rolled back.
 */
export async function admitAll(runs: BatchRuns, batch: Batch): Promise<readonly RunRecord[]> {
  batch.refuseWhenDraining();
  const liveThreads: LiveThread[] = [];
  try {
    for (const { key, draft } of runs) {
      // oxlint-disable-next-line no-await-in-loop -- a new thread is not read from the storage, so this does not wait
      const liveThread = await batch.wake(key, draft.create);
      // A batch may have more threads than the limit of idle threads in memory. Without the claim, some of them could
      // be removed.
      batch.claim(liveThread);
      liveThreads.push(liveThread);
    }
    return await admitTo(liveThreads, runs, batch);
  } finally {
    for (const liveThread of liveThreads) batch.release(liveThread);
  }
}

async function admitTo(
  liveThreads: readonly LiveThread[],
  runs: BatchRuns,
  { refused, refuseWhenDraining, letGo, starts }: Batch,
): Promise<readonly RunRecord[]> {
  refuseWhenDraining();
  // No run begins before all runs are stored: a node that computes would block the event loop, and delay the storing of
  // the other runs and the response to the client.
  const deferredStarts = new DeferredRunStarts(starts);
  const admitted: Promise<RunRecord>[] = [];
  for (const [i, { draft }] of runs.entries()) {
    const liveThread = liveThreads[i] as LiveThread;
    try {
      admitted.push(admitRun(liveThread, draft, deferredStarts));
    } catch (cause) {
      const back = takeBack(liveThreads.slice(0, i), runs);
      for (const unused of liveThreads.slice(i)) letGo(unused);
      await Promise.allSettled(admitted);
      deferredStarts.release();
      await Promise.allSettled(back);
      throw refused(i, cause);
    }
  }
  const results = await Promise.allSettled(admitted);
  const failed = results.findIndex(({ status }) => status === "rejected");
  const back = failed < 0 ? [] : takeBack(liveThreads, runs);
  deferredStarts.release();
  if (failed < 0) return Promise.all(admitted);
  await Promise.allSettled(back);
  throw refused(failed, (results[failed] as PromiseRejectedResult).reason);
}

function takeBack(
  liveThreads: readonly LiveThread[],
  runs: readonly { readonly draft: RunDraft }[],
): readonly Promise<void>[] {
  return liveThreads.map((liveThread, i) =>
    cancelThreadRun(liveThread, runs[i]?.draft.run_id ?? "", "rollback", null),
  );
}
