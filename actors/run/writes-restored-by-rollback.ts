import { emptyWrites, type CheckpointHead, type PendingTaskWrites } from "../../src/model/checkpoint.ts";
import type { RunRecord } from "../../src/model/run.ts";
import type { Interrupt, InterruptsByTask } from "../../src/model/interrupt.ts";
import { andThen } from "../../src/ports/eventually.ts";
import type { LiveThread } from "../thread/live-thread.ts";

/**
 * The writes at a checkpoint, with an empty entry for each planned task that has no writes: a run can change the writes
 * of these tasks too.
 */
export function writesOfPlannedTasks(
  head: CheckpointHead,
  writes: readonly PendingTaskWrites[],
): readonly PendingTaskWrites[] {
  const left = new Set(writes.map(({ task }) => task));
  const { ns, id: checkpoint } = head;
  const others = head.next.filter(({ id }) => !left.has(id));
  return [...writes, ...others.map(({ id, name }) => emptyWrites({ ns, checkpoint, task: id, name }))];
}

/** Interrupts that wait for an answer, by task id. */
export function interruptsOfWrites(
  writes: Iterable<{ readonly task: string; readonly interrupts: readonly Interrupt[] }>,
): InterruptsByTask {
  const waiting: Record<string, readonly Interrupt[]> = {};
  for (const { task, interrupts } of writes) if (interrupts.length > 0) waiting[task] = interrupts;
  return waiting;
}

/**
 * Removes from `before`, and returns, the earlier task writes at the checkpoints of `writes`, so that a rollback can
 * restore them.
 */
export function takeWritesToRestore(
  before: Map<string, readonly PendingTaskWrites[]> | null,
  writes: readonly PendingTaskWrites[],
): readonly PendingTaskWrites[] {
  if (before === null || before.size === 0) return [];
  const base: PendingTaskWrites[] = [];
  for (const { checkpoint } of writes) {
    const left = before.get(checkpoint);
    if (left !== undefined) base.push(...left);
    before.delete(checkpoint);
  }
  return base;
}

/**
 * The writes to restore when a run is rolled back, in the root graph and in subgraphs: the earlier writes in the run's
 * record, and empty entries for tasks whose first writes are from the run.
 */
export async function writesBeforeRun(
  liveThread: LiveThread,
  { base_writes }: Pick<RunRecord, "base_writes">,
): Promise<readonly PendingTaskWrites[]> {
  const noted = base_writes ?? [];
  const places = new Map(noted.map((left) => [`${left.checkpoint} ${left.ns}`, left]));
  const put = [...noted];
  for (const { ns, checkpoint } of places.values()) {
    const known = new Set(noted.flatMap((one) => (one.checkpoint === checkpoint ? one.task : [])));
    const now = await andThen(liveThread.deps.journal.writes(liveThread.key, ns, checkpoint), (left) => left);
    put.push(...now.filter(({ task }) => !known.has(task)).map(emptyWrites));
  }
  return put;
}
