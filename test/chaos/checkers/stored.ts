import { chunkEnd } from "../../../src/model/run-event.ts";
import { isTerminal } from "../../../src/model/run.ts";
import type { Violation } from "../ledger.ts";
import type { Snapshot, StoredCheckpoint, StoredThread } from "../snapshot.ts";

/** I4, as stored: the events of a run have the ids 0 to n, without gaps or duplicates. */
export function eventsAreContiguous(snapshot: Snapshot): Violation[] {
  const found: Violation[] = [];
  for (const { key, runs } of snapshot.threads) {
    for (const { record, chunks, nextEvent } of runs) {
      let next = 0;
      for (const chunk of chunks) {
        if (chunk.first !== next) {
          found.push({
            invariant: "I4",
            message: `run ${record.run_id}: a stored chunk begins at event ${chunk.first}, ${next} was due`,
            evidence: { thread: key.thread, chunks: chunks.map((c) => [c.first, chunkEnd(c)]) },
          });
        }
        next = chunkEnd(chunk);
      }
      const expected = isTerminal(record.status) ? [nextEvent, record.next_event] : [nextEvent];
      for (const end of expected) {
        if (end === next) continue;
        found.push({
          invariant: "I4",
          message: `run ${record.run_id} (${record.status}): its stored events end at ${next}, but ${end} is recorded as the next`,
          evidence: { thread: key.thread, status: record.status },
        });
      }
    }
  }
  return found;
}

const logOf = (at: StoredCheckpoint): readonly unknown[] => {
  const { log } = at.values;
  return Array.isArray(log) ? log : [];
};

/** Returns what the nodes that led to a checkpoint added to the log, according to the checkpoint. */
function addedTo(at: StoredCheckpoint): unknown[] {
  const added: unknown[] = [];
  for (const update of Object.values(at.checkpoint.writes ?? {})) {
    for (const one of Array.isArray(update) ? update : [update]) {
      const { log } = (one ?? {}) as { log?: unknown };
      if (Array.isArray(log)) added.push(...log);
    }
  }
  return added;
}

const sorted = (list: readonly unknown[]) => JSON.stringify(list.map(String).sort());

/**
 * I6: nothing is damaged, and each checkpoint's state equals its parent's state plus the writes of the step's nodes.
 */
export function stateIsTheFold(snapshot: Snapshot): Violation[] {
  const found: Violation[] = snapshot.damage.map(({ key, what }) => ({
    invariant: "I6",
    message: `thread ${key.thread}: ${what}`,
    evidence: "journal.verify()",
  }));
  for (const thread of snapshot.threads) {
    const byId = new Map(thread.checkpoints.map((at) => [at.checkpoint.id, at]));
    const newest = thread.checkpoints[0]?.checkpoint.id ?? null;
    if (thread.record !== undefined && thread.record.checkpoint !== newest) {
      found.push({
        invariant: "I6",
        message: `thread ${thread.key.thread} rests at checkpoint ${thread.record.checkpoint}, but its newest is ${newest}`,
        evidence: thread.checkpoints.slice(0, 5).map((at) => at.checkpoint.id),
      });
    }
    for (const at of thread.checkpoints) {
      const parent = at.checkpoint.parent === null ? undefined : byId.get(at.checkpoint.parent);
      if (at.checkpoint.parent !== null && parent === undefined) {
        if (thread.whole) found.push(orphan(thread, at));
        continue;
      }
      const before = parent === undefined ? [] : logOf(parent);
      const after = logOf(at);
      const kept = JSON.stringify(after.slice(0, before.length)) === JSON.stringify(before);
      const added = after.slice(before.length);
      const own = addedTo(at);
      if (kept && sorted(added) === sorted(own)) continue;
      if (kept && isWholeRun(thread, at, added, own)) continue;
      found.push({
        invariant: "I6",
        message: `thread ${thread.key.thread}: the state at checkpoint ${at.checkpoint.id} (step ${at.checkpoint.step}) is not its parent's with the step's writes`,
        evidence: { before: before.slice(-6), after: after.slice(-8), writes: at.checkpoint.writes },
      });
    }
  }
  return found;
}

/** If a run stores nothing before its end, one checkpoint contains all that its steps added, including the last one. */
function isWholeRun(
  { runs }: StoredThread,
  { checkpoint: { run_id } }: StoredCheckpoint,
  added: readonly unknown[],
  own: readonly unknown[],
): boolean {
  const run = runs.find(({ record }) => record.run_id === run_id);
  if (run?.record.kwargs.durability !== "exit") return false;
  const lines = new Set(added);
  return (
    lines.size === added.length &&
    own.every((line) => lines.has(line)) &&
    added.every((line) => String(line).startsWith(`${run_id}:`))
  );
}

const orphan = (thread: StoredThread, at: StoredCheckpoint): Violation => ({
  invariant: "I6",
  message: `thread ${thread.key.thread}: checkpoint ${at.checkpoint.id} names a parent that is not there`,
  evidence: at.checkpoint,
});

/** I7: the indexes agree with the records. */
export function indexesAgree(snapshot: Snapshot): Violation[] {
  const found: Violation[] = [];
  const unsettled = new Set(snapshot.unsettled);
  const say = (thread: string, message: string, evidence: unknown) =>
    found.push({ invariant: "I7", message: `thread ${thread}: ${message}`, evidence });
  for (const { key, record, runs } of snapshot.threads) {
    if (record === undefined) {
      say(key.thread, "is in the index of threads, but has no record", key);
      continue;
    }
    const waiting = record.active === null ? record.queue : [record.active, ...record.queue];
    // A temporary thread at least has to be deleted.
    const marked = waiting.length > 0 || record.temporary !== null;
    if (marked !== unsettled.has(key.thread)) {
      say(
        key.thread,
        `has ${waiting.length} unfinished runs, but the index of unfinished work says otherwise`,
        {
          waiting,
        },
      );
    }
    const open = runs
      .filter(({ record: run }) => !isTerminal(run.status))
      .map(({ record: run }) => run.run_id);
    const delayed = (record.delayed ?? []).map(({ run }) => run);
    if (sorted(open) !== sorted([...waiting, ...delayed])) {
      say(key.thread, "its unfinished runs are not those that it has in progress, in its queue and delayed", {
        open,
        waiting,
      });
    }
    for (const { record: listed, single } of runs) {
      if (JSON.stringify(listed) !== JSON.stringify(single)) {
        say(key.thread, `run ${listed.run_id} reads differently by itself and in the list`, {
          listed,
          single,
        });
      }
    }
  }
  const known = new Set(snapshot.threads.map(({ key }) => key.thread));
  for (const thread of unsettled) {
    if (snapshot.complete && !known.has(thread))
      say(thread, "has unfinished work, but is not in the index of threads", thread);
  }
  return found;
}
