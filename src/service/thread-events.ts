import type { ThreadKey } from "../model/thread.ts";
import type { Journal } from "../ports/journal.ts";
import type { Hub } from "../stream/hub.ts";
import type { ThreadReader } from "../stream/thread-reader.ts";
import { visibleThread } from "./threads.ts";

interface Deps {
  readonly journal: Journal;
  readonly hub: Hub;
}

/**
 * Reads the events of a thread's runs. With `after`: the events with a higher number in the thread (0 or less: all that are stored).
 * Without: those of the current run and of later runs. A number that the thread has not given out yet is ignored: the reader starts at the
 * first event. `withEnds`: includes the end of each run. The reader MUST be closed.
 * @throws ServiceError `thread.not_found`
 */
export async function followThread(
  { journal, hub }: Deps,
  key: ThreadKey,
  after?: number,
  withEnds = false,
): Promise<ThreadReader> {
  const { next_event, active } = await visibleThread(journal, key);
  const isKnown = after === undefined || after < next_event || active !== null;
  // The current run takes its numbers from `next_event` on.
  const from = isKnown ? (after ?? next_event - 1) : 0;
  return hub.followThread(key, from, withEnds);
}
