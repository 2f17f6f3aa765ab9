import { blank, type Checkpoint, type CheckpointHead, type TaskWrites } from "../../src/model/checkpoint.ts";
import type { RunRecord } from "../../src/model/run.ts";
import type { Interrupt, Interrupts } from "../../src/model/interrupt.ts";
import type { RestState } from "../../src/model/thread.ts";
import { andThen, type Eventually } from "../../src/ports/eventually.ts";
import type { Cell } from "../thread/cell.ts";

/** How the thread stood before a run. */
export interface Standing {
  readonly rest: RestState;
  readonly interrupts: Interrupts;
  /** What tasks had left there, where the run has changed it. */
  readonly writes: readonly TaskWrites[];
}

/** What the tasks of a checkpoint have left there, also those that have left nothing: all that a run can change there. */
export function leftAt(head: CheckpointHead, writes: readonly TaskWrites[]): readonly TaskWrites[] {
  const left = new Set(writes.map(({ task }) => task));
  const { ns, id: checkpoint } = head;
  const others = head.next.filter(({ id }) => !left.has(id));
  return [...writes, ...others.map(({ id, name }) => blank({ ns, checkpoint, task: id, name }))];
}

/** Questions that wait, by task. */
export function pending(
  writes: Iterable<{ readonly task: string; readonly interrupts: readonly Interrupt[] }>,
): Interrupts {
  const waiting: Record<string, readonly Interrupt[]> = {};
  for (const { task, interrupts } of writes) if (interrupts.length > 0) waiting[task] = interrupts;
  return waiting;
}

/** How the thread stood before the run, and what to put back of what its tasks, also in subgraphs, had left there. */
export async function standingBefore(cell: Cell, run: RunRecord): Promise<Standing> {
  const base = run.base_checkpoint;
  const writes = await restored(cell, run.base_writes ?? []);
  if (base === null) return { rest: "idle", interrupts: {}, writes };
  const head = await rootAt(cell, base);
  if (head === undefined || head.next.length === 0) return { rest: "success", interrupts: {}, writes };
  const put = new Map(writes.filter(({ ns }) => ns === "").map((left) => [left.task, left]));
  const left = await cell.deps.journal.writes(cell.key, "", base);
  return { rest: "interrupted", interrupts: pending(left.map((now) => put.get(now.task) ?? now)), writes };
}

function rootAt(cell: Cell, id: string): Eventually<Checkpoint | undefined> {
  return cell.deps.journal.checkpoint(cell.key, "", id);
}

/** What was noted, and blanks for what has come since. */
async function restored(cell: Cell, noted: readonly TaskWrites[]): Promise<readonly TaskWrites[]> {
  const places = new Map(noted.map((left) => [`${left.checkpoint} ${left.ns}`, left]));
  const put = [...noted];
  for (const { ns, checkpoint } of places.values()) {
    const known = new Set(noted.flatMap((one) => (one.checkpoint === checkpoint ? one.task : [])));
    const now = await andThen(cell.deps.journal.writes(cell.key, ns, checkpoint), (left) => left);
    put.push(...now.filter(({ task }) => !known.has(task)).map(blank));
  }
  return put;
}
