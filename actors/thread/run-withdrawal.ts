import type { OutboxItem } from "../../src/model/webhook-delivery.ts";
import type { CancelAction, MultitaskStrategy, RunRecord } from "../../src/model/run.ts";
import type { Cell } from "./live-thread.ts";
import { stronger } from "./multitask.ts";
import { ended, owedBy } from "./record-changes.ts";

/** Runs that end without having started, as one append stores it: kept as ended, or forgotten. */
export interface Withdrawn {
  readonly runs: readonly RunRecord[];
  readonly forget: readonly string[];
  readonly outbox?: readonly OutboxItem[];
}

/** Ends runs that have not started. `reason`: in the words of who wanted it. */
export function withdraw(
  runs: readonly RunRecord[],
  action: CancelAction,
  now: number,
  reason: string | null = null,
): Withdrawn {
  if (action === "rollback") return { runs: [], forget: runs.map(({ run_id }) => run_id) };
  const out = runs.map((run) => ({ ...ended(run, "interrupted", now), cancel_reason: reason }));
  return { runs: out, forget: [], ...owedBy(out) };
}

/** The runs that have not started and that a new one of this strategy ends; null: none. */
export function superseded(cell: Cell, strategy: MultitaskStrategy, now: number): Withdrawn | null {
  if (strategy !== "interrupt" && strategy !== "rollback") return null;
  if (cell.record.queue.length === 0 && cell.delayed.size === 0) return null;
  const queued = cell.record.queue.flatMap((id) => cell.runs.get(id) ?? []);
  return withdraw([...queued, ...cell.delayed.values()], strategy, now);
}

export const idsOf = ({ runs, forget }: Withdrawn): readonly string[] => [
  ...runs.map(({ run_id }) => run_id),
  ...forget,
];

/** They are not to start any more. */
export function drop(cell: Cell, id: string): void {
  cell.runs.delete(id);
  cell.delayed.delete(id);
  cell.owner.gate.leave(id);
}

/** Their end is stored: whoever reads them or waits for them is told. */
export function dismiss(cell: Cell, out: Withdrawn): void {
  for (const id of idsOf(out)) {
    cell.owner.tally.withdrawn++;
    cell.deps.sinks.dismiss(cell.key, id);
    cell.owner.concluded(cell, id, { run: out.runs.find(({ run_id }) => run_id === id) });
  }
}

/** The active run's end is asked for: noted in its record, so that a crash cannot forget it. */
export function markActive(cell: Cell, action: CancelAction, reason: string | null = null): RunRecord[] {
  const active = cell.record.active === null ? undefined : cell.runs.get(cell.record.active);
  if (active === undefined) return [];
  const marked = {
    ...active,
    cancel: stronger(active.cancel, action),
    cancel_reason: active.cancel_reason ?? reason,
  };
  cell.runs.set(active.run_id, marked);
  return [marked];
}
