import { isTerminal } from "../src/model/run.ts";
import type { Append } from "../src/ports/journal.ts";
import type { UnendedRun } from "../src/ports/unended-runs.ts";
import type { UnendedRunOutcome } from "./thread-system.ts";
import { gone, type Cell } from "./thread/live-thread.ts";
import { ended, owedBy } from "./thread/record-changes.ts";

/** The part of an append that ends a run. */
export function endOf({ run, end }: UnendedRun, now: number): Pick<Append, "runs" | "forget" | "outbox"> {
  if (end === null) return { forget: [run.run_id] };
  const { status, error, next_event, wasStored } = end;
  const runs = [ended(run, status, now, error, next_event)];
  return wasStored ? { runs } : { runs, ...owedBy(runs) };
}

/** Stores the end that a run's record lacks, and notifies its readers and waiting requests. */
export async function endUnendedRun(cell: Cell, found: UnendedRun): Promise<UnendedRunOutcome> {
  const { run_id: id } = found.run;
  for (;;) {
    if (!cell.alive) throw gone();
    await cell.tail;
    const { seq } = cell.record;
    const run = await cell.deps.journal.run(cell.key, id);
    // The thread was changed since: read again.
    if (cell.record.seq !== seq || cell.inFlight > 0) continue;
    if (run === undefined || isTerminal(run.status) || cell.runs.has(id) || cell.delayed.has(id)) {
      return undefined;
    }
    const end = endOf({ ...found, run }, cell.deps.clock.now());
    await cell.write({ kind: "mended", durable: true, ...end }, (thread) => thread, true);
    cell.deps.sinks.dismiss(cell.key, id);
    cell.owner.concluded(cell, id, { run: end.runs?.[0] });
    return found.end?.status ?? "forgotten";
  }
}
