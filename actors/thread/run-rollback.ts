import type { TaskWrites } from "../../src/model/checkpoint.ts";
import { ServiceError } from "../../src/model/errors.ts";
import type { Interrupts } from "../../src/model/interrupt.ts";
import type { RunRecord } from "../../src/model/run.ts";
import { leftBefore, pending } from "../run/rollback-base.ts";
import { gone, type Cell } from "./live-thread.ts";
import { situationOf } from "./thread-chart.ts";

/** Checkpoints: how many are read at a time. */
const PAGE = 64;

/** The thread's status and checkpoint without the run. */
interface Standing {
  readonly checkpoint: string | null;
  readonly rest: "interrupted" | "idle";
  readonly interrupts: Interrupts;
  /** Task writes from before the run, to restore. */
  readonly writes: readonly TaskWrites[];
}

/** Deletes a run that has ended, with its checkpoints. */
export async function forget(cell: Cell, run: RunRecord): Promise<void> {
  const { run_id: id } = run;
  for (;;) {
    const { actor } = cell;
    if (actor === undefined || !cell.alive) throw gone();
    if (cell.runs.has(id) || cell.delayed.has(id)) {
      throw new ServiceError("run.conflict", "The run has not ended: cancel it first");
    }
    // A run in progress builds on checkpoints that may be this run's.
    if (situationOf(actor.getSnapshot().value) !== "resting") {
      throw new ServiceError("thread.busy", "Thread is busy: its runs can be deleted when it is idle");
    }
    const { seq } = cell.record;
    let standing: Standing | undefined;
    try {
      standing = await standingWithout(cell, run);
    } catch (cause) {
      if (cell.alive && cell.record.seq !== seq) continue;
      throw cause;
    }
    // The thread was changed meanwhile: start again.
    if (!cell.alive || cell.record.seq !== seq) continue;
    const { writes = [], ...stands } = standing ?? {};
    const now = cell.deps.clock.now();
    const stored = cell.write({ kind: "forgotten", durable: true, forget: [id], writes }, (thread) => ({
      ...thread,
      ...stands,
      ...(standing && { state_updated_at: now, error: null }),
    }));
    cell.forget();
    if (standing !== undefined) actor.send({ type: "STATE.UPDATED", rest: standing.rest });
    cell.owner.rested(cell);
    return stored;
  }
}

/** The status without the run; undefined: unchanged. */
async function standingWithout(cell: Cell, run: RunRecord): Promise<Standing | undefined> {
  const { journal } = cell.deps;
  const { checkpoint } = cell.record;
  if (checkpoint === null) return undefined;
  // The journal shows only what is stored, and the latest checkpoint may still be in flight.
  await cell.tail;
  const latest = await journal.checkpoint(cell.key, "", checkpoint);
  if (latest?.run_id !== run.run_id) return undefined;
  for (let before = checkpoint; ;) {
    const page = await journal.history(cell.key, { ns: "", limit: PAGE, before });
    const found = page.find(({ run_id }) => run_id !== run.run_id);
    if (found !== undefined) {
      const put = await leftBefore(cell, run);
      const left = new Map<string, TaskWrites>();
      for (const writes of await journal.writes(cell.key, "", found.id)) left.set(writes.task, writes);
      for (const writes of put)
        if (writes.ns === "" && writes.checkpoint === found.id) left.set(writes.task, writes);
      const rest = found.next.length > 0 ? "interrupted" : "idle";
      return { checkpoint: found.id, rest, interrupts: pending(left.values()), writes: put };
    }
    const oldest = page.at(-1);
    if (oldest === undefined) return { checkpoint: null, rest: "idle", interrupts: {}, writes: [] };
    before = oldest.id;
  }
}
