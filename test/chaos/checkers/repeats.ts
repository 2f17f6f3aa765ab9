import { isTerminal } from "../../../src/model/run.ts";
import type { Effect } from "../effects.ts";
import type { Violation } from "../ledger.ts";
import type { Snapshot } from "../snapshot.ts";

/** A task whose writes were stored when the server was killed, and the number of effects at that time. */
export interface Finished {
  readonly task: string;
  /** The run of the task. */
  readonly run: string;
  readonly effects: number;
  readonly why: string;
}

/**
 * Tasks that must not run again: those of a superstep whose checkpoint is stored, and those that have finished beside
 * an unfinished sibling.
 */
export function finishedTasks(snapshot: Snapshot, effects: readonly Effect[]): Finished[] {
  const found: Finished[] = [];
  const lastRun = new Map(effects.map((effect) => [effect.task, effect.run]));
  for (const { checkpoints } of snapshot.threads) {
    const byId = new Map(checkpoints.map((at) => [at.checkpoint.id, at]));
    for (const { checkpoint } of checkpoints) {
      const parent = checkpoint.parent === null ? undefined : byId.get(checkpoint.parent);
      if (parent === undefined || checkpoint.source !== "loop" || checkpoint.run_id === null) continue;
      for (const { id } of parent.checkpoint.next) {
        found.push({
          task: id,
          run: checkpoint.run_id,
          effects: effects.length,
          why: `checkpoint ${checkpoint.id} (step ${checkpoint.step}) was stored`,
        });
      }
    }
    for (const { writes } of checkpoints) {
      for (const write of writes) {
        const run = lastRun.get(write.task);
        if (write.result === undefined || run === undefined) continue;
        found.push({ task: write.task, run, effects: effects.length, why: "its own result was stored" });
      }
    }
  }
  return found;
}

/**
 * Tasks that a graceful stop has waited for: all that had begun, because none takes as long as the drain. Runs that
 * store nothing before their end start from the beginning.
 */
export function endedByStop({ threads }: Snapshot, effects: readonly Effect[]): Finished[] {
  const open = new Set<string>();
  for (const { runs } of threads) {
    for (const { record } of runs) {
      if (!isTerminal(record.status) && record.kwargs.durability !== "exit") open.add(record.run_id);
    }
  }
  const begun = effects.filter(({ run }) => open.has(run));
  const why = "the server had stopped in good order";
  return begun.map(({ task, run }) => ({ task, run, effects: effects.length, why }));
}

/** I2: no task runs again if its writes were stored. */
export function nothingIsRepeated(finished: Iterable<Finished>, effects: readonly Effect[]): Violation[] {
  const first = new Map<string, Finished>();
  for (const one of finished) {
    const key = `${one.run} ${one.task}`;
    const known = first.get(key);
    if (known === undefined || one.effects < known.effects) first.set(key, one);
  }
  const found: Violation[] = [];
  for (const [index, effect] of effects.entries()) {
    const before = first.get(`${effect.run} ${effect.task}`);
    if (before === undefined || index < before.effects) continue;
    found.push({
      invariant: "I2",
      message: `node ${effect.node} of run ${effect.run} ran again (attempt ${effect.attempt}), although ${before.why} before the kill`,
      evidence: { effect, before },
    });
  }
  return found;
}

/**
 * I8: at most one run at a time on a thread. Seen from the node bodies: when another run has begun on the thread, an
 * earlier run must never begin a node again, in this life of the server or a later one.
 */
export function oneRunAtATime(effects: readonly Effect[]): Violation[] {
  const current = new Map<string, string>();
  const gone = new Map<string, Set<string>>();
  const found: Violation[] = [];
  for (const effect of effects) {
    const before = current.get(effect.thread);
    if (before === effect.run) continue;
    const past = gone.get(effect.thread) ?? new Set<string>();
    gone.set(effect.thread, past);
    if (past.has(effect.run)) {
      found.push({
        invariant: "I8",
        message: `thread ${effect.thread}: run ${effect.run} began node ${effect.node} after run ${before} had begun`,
        evidence: effects.filter((e) => e.thread === effect.thread).slice(-20),
      });
    }
    if (before !== undefined) past.add(before);
    current.set(effect.thread, effect.run);
  }
  return found;
}
