import type { ThreadKey } from "../model/thread.ts";
import type { Journal } from "../ports/journal.ts";
import type { Hub } from "../stream/hub.ts";
import type { ThreadReader } from "../stream/thread-reader.ts";
import { threadAt } from "./threads.ts";

interface Deps {
  readonly journal: Journal;
  readonly hub: Hub;
}

/**
 * Reads the events of a thread's runs: above the thread's number `after` (0 or less: of all that are stored, from the first),
 * or, when that is undefined, of the run in progress and of those to come. A number that the thread has not given out is no
 * place to go on from: then it is read from the start. `ends`: the ends of runs too. The reader MUST be closed.
 * @throws ServiceError `thread.not_found`
 */
export async function followThread(
  { journal, hub }: Deps,
  key: ThreadKey,
  after?: number,
  ends = false,
): Promise<ThreadReader> {
  const { next_event, active } = await threadAt(journal, key);
  const isKnown = after === undefined || after < next_event || active !== null;
  // The run in progress has its numbers from there on.
  const from = isKnown ? (after ?? next_event - 1) : 0;
  return ends ? hub.followWhole(key, from) : hub.followThread(key, from);
}
