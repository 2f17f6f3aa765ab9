import type { ThreadKey, ThreadRecord } from "../src/model/thread.ts";
import type { SystemDeps } from "./thread-system-interface.ts";
import { recoveryOfTemporary, type TemporaryThreads } from "./temporary-threads.ts";

/** Loads every thread that has runs to continue, and deletes leftover temporary threads: at once, or when nobody reads their runs any more. */
export async function recoverThreads(
  { journal, failpoints, logger }: SystemDeps,
  temporaries: TemporaryThreads,
  wake: (key: ThreadKey) => unknown,
): Promise<void> {
  await failpoints.hit("recovery.before");
  let found = 0;
  const cleared: Promise<void>[] = [];
  const ended: (readonly [ThreadKey, ThreadRecord])[] = [];
  for await (const key of journal.unsettled()) {
    await failpoints.hit("recovery.thread");
    try {
      const record = await journal.thread(key);
      if (record === undefined || record.temporary === null) await wake(key);
      else if (!(await recoverTemporary(key, record))) continue;
      found++;
    } catch (cause) {
      lost(key, cause);
    }
  }
  // Waits until leftover threads are deleted: due runs are looked up next, and some may belong to these threads.
  await Promise.all(cleared);
  temporaries.deleteLater(ended);
  if (found > 0) logger.info("took up threads with unfinished runs", { threads: found });

  /** Continues the run of a temporary thread, or deletes the thread. Returns false if the thread is only kept for its readers. */
  async function recoverTemporary(key: ThreadKey, record: ThreadRecord): Promise<boolean> {
    const recovery = recoveryOfTemporary(record);
    if (recovery === "keep") ended.push([key, record]);
    else if (recovery === "delete") cleared.push(clear(key, record));
    else {
      temporaries.noteContinued(key);
      await wake(key);
    }
    return recovery !== "keep";
  }

  function clear(key: ThreadKey, record: ThreadRecord): Promise<void> {
    return temporaries.deleteLeftover(key, record).catch((cause: unknown) => lost(key, cause));
  }

  /** Logs that a thread could not be loaded. One damaged thread must not keep the server from loading the others. */
  function lost(key: ThreadKey, cause: unknown): void {
    logger.error("a thread could not be recovered", { thread: key.thread, cause: String(cause) });
  }
}
