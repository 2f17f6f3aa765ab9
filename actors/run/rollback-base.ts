import { blank, type CheckpointHead, type TaskWrites } from "../../src/model/checkpoint.ts";
import type { RunRecord } from "../../src/model/run.ts";
import type { Interrupt, Interrupts } from "../../src/model/interrupt.ts";
import { andThen } from "../../src/ports/eventually.ts";
import type { Cell } from "../thread/live-thread.ts";

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

/** What tasks had left where these writes are about to replace it: a rollback will want it back. It is noted once. */
export function overwritten(
  before: Map<string, readonly TaskWrites[]> | null,
  writes: readonly TaskWrites[],
): readonly TaskWrites[] {
  if (before === null || before.size === 0) return [];
  const base: TaskWrites[] = [];
  for (const { checkpoint } of writes) {
    const left = before.get(checkpoint);
    if (left !== undefined) base.push(...left);
    before.delete(checkpoint);
  }
  return base;
}

/** What is to be put back of what tasks, also in subgraphs, had left before the run: what it noted, and blanks for what has come since. */
export async function leftBefore(
  cell: Cell,
  { base_writes }: Pick<RunRecord, "base_writes">,
): Promise<readonly TaskWrites[]> {
  const noted = base_writes ?? [];
  const places = new Map(noted.map((left) => [`${left.checkpoint} ${left.ns}`, left]));
  const put = [...noted];
  for (const { ns, checkpoint } of places.values()) {
    const known = new Set(noted.flatMap((one) => (one.checkpoint === checkpoint ? one.task : [])));
    const now = await andThen(cell.deps.journal.writes(cell.key, ns, checkpoint), (left) => left);
    put.push(...now.filter(({ task }) => !known.has(task)).map(blank));
  }
  return put;
}
