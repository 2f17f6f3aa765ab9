import type { ThreadKey } from "../src/model/thread.ts";
import type { SystemDeps } from "./port.ts";
import { isLeftOver, type Temporaries } from "./temporary.ts";

/** Takes up every thread that was left at work. */
export async function recover(
  { journal, failpoints, logger }: SystemDeps,
  temporaries: Temporaries,
  wake: (key: ThreadKey) => unknown,
): Promise<void> {
  await failpoints.hit("recovery.before");
  let found = 0;
  for await (const key of journal.unsettled()) {
    await failpoints.hit("recovery.thread");
    try {
      const record = await journal.thread(key);
      if (record !== undefined && isLeftOver(record)) await temporaries.clear(key, record);
      else await wake(key);
      found++;
    } catch (cause) {
      // One damaged thread must not keep the others from being served.
      logger.error("a thread could not be recovered", { thread: key.thread, cause: String(cause) });
    }
  }
  if (found > 0) logger.info("took up unsettled threads", { threads: found });
}
