import { isTerminal } from "../../src/model/run.ts";
import { listsRun, type ThreadRecord } from "../../src/model/thread.ts";
import type { Append } from "../../src/ports/journal.ts";

/**
 * The log message for a write in which {@link findInconsistency} finds an error. Such an error is always a bug of the
 * server.
 */
export const INCONSISTENT_WRITE_MESSAGE = "a write that contradicts its thread's record was refused";

/**
 * Checks a write against its thread's record. Returns what is wrong, or undefined. The record must list exactly the
 * runs that have not ended, in `active`, `queue` and `delayed`: a run is added in the append with its first record, and
 * removed in the append with its end.
 */
export function findInconsistency(
  before: ThreadRecord,
  after: ThreadRecord,
  { runs = [], forget = [] }: Pick<Append, "runs" | "forget">,
): string | undefined {
  for (const { run_id, status } of runs) {
    if (isTerminal(status) === listsRun(after, run_id)) {
      return isTerminal(status)
        ? `run ${run_id} ends (${status}), and its thread still lists it`
        : `run ${run_id} is ${status}, and its thread does not list it`;
    }
  }
  // Most appends do not change the lists of runs, so there is nothing more to check.
  if (before.active === after.active && before.queue === after.queue && before.delayed === after.delayed) {
    return undefined;
  }
  // Most of the other appends begin or end the run in progress, and keep the queue. For these, no sets are built.
  const keepsQueue = before.queue === after.queue && before.delayed === after.delayed;
  const [earlier, later] = keepsQueue ? [activeOf(before), activeOf(after)] : [listed(before), listed(after)];
  const wasListed = keepsQueue ? (id: string) => listsRun(before, id) : membership(earlier);
  const isListed = keepsQueue ? (id: string) => listsRun(after, id) : membership(later);
  for (const id of earlier) {
    if (isListed(id) || forget.includes(id) || runs.some(({ run_id }) => run_id === id)) continue;
    return `run ${id} is removed from its thread without an end`;
  }
  for (const id of later) {
    if (wasListed(id) || runs.some(({ run_id, order }) => run_id === id && order >= before.next_run))
      continue;
    return `run ${id} is added to its thread, and is neither new nor in progress`;
  }
  return undefined;
}

function activeOf({ active }: ThreadRecord): readonly string[] {
  return active === null ? [] : [active];
}

function membership(ids: readonly string[]): (id: string) => boolean {
  const all = new Set(ids);
  return (id) => all.has(id);
}

function listed({ active, queue, delayed }: ThreadRecord): readonly string[] {
  const waiting = delayed === null ? queue : [...queue, ...delayed.map(({ run }) => run)];
  return active === null ? waiting : [active, ...waiting];
}
