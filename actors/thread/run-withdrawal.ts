import type { OutboxItem } from "../../src/model/webhook-delivery.ts";
import type { CancelAction, MultitaskStrategy, RunRecord } from "../../src/model/run.ts";
import type { Cell } from "./live-thread.ts";
import { stronger } from "./multitask.ts";
import { ended, owedBy } from "./record-changes.ts";

/** The part of an append that ends runs which have not started: they are stored as ended, or deleted. */
export interface Withdrawn {
  readonly runs: readonly RunRecord[];
  readonly forget: readonly string[];
  readonly outbox?: readonly OutboxItem[];
}

/** Ends runs that have not started. `reason`: the caller's words. */
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

/** Ends the waiting runs that a new run of this strategy supersedes; null: there are none. */
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

/** Removes a waiting run from memory and from the concurrency limiter. */
export function drop(cell: Cell, id: string): void {
  cell.runs.delete(id);
  cell.delayed.delete(id);
  cell.owner.gate.leave(id);
}

/** Notifies readers and waiting requests that these runs have ended, when that is stored. */
export function dismiss(cell: Cell, out: Withdrawn): void {
  for (const id of idsOf(out)) {
    cell.owner.tally.withdrawn++;
    cell.deps.sinks.dismiss(cell.key, id);
    cell.owner.concluded(cell, id, { run: out.runs.find(({ run_id }) => run_id === id) });
  }
}

/** Marks the active run as cancelled in its record, so that the request survives a crash. */
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
