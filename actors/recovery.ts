import type { ThreadKey, ThreadRecord } from "../src/model/thread.ts";
import type { SystemDeps } from "./thread-system.ts";
import { isLeftOver, type Temporaries } from "./temporary-threads.ts";

/** Takes up every thread that was left at work. */
export async function recover(
  { journal, failpoints, logger }: SystemDeps,
  temporaries: Temporaries,
  wake: (key: ThreadKey) => unknown,
): Promise<void> {
  await failpoints.hit("recovery.before");
  let found = 0;
  const cleared: Promise<void>[] = [];
  for await (const key of journal.unsettled()) {
    await failpoints.hit("recovery.thread");
    try {
      const record = await journal.thread(key);
      if (record !== undefined && isLeftOver(record)) cleared.push(clear(key, record));
      else await wake(key);
      found++;
    } catch (cause) {
      lost(key, cause);
    }
  }
  // What is to go must be gone before runs that are due are looked up: some of them may be of such threads.
  await Promise.all(cleared);
  if (found > 0) logger.info("took up unsettled threads", { threads: found });

  function clear(key: ThreadKey, record: ThreadRecord): Promise<void> {
    return temporaries.clear(key, record).catch((cause: unknown) => lost(key, cause));
  }

  /** One damaged thread must not keep the others from being served. */
  function lost(key: ThreadKey, cause: unknown): void {
    logger.error("a thread could not be recovered", { thread: key.thread, cause: String(cause) });
  }
}
