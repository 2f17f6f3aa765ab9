import type { PendingTaskWrites } from "../../src/model/checkpoint.ts";
import { invalidField } from "../../src/model/errors.ts";
import type { InterruptsByTask } from "../../src/model/interrupt.ts";
import type { CheckpointWithState } from "../../src/ports/engine.ts";
import type { LiveThread } from "./live-thread.ts";

const FIELD = "checkpoint.checkpoint_ns";

/**
 * The new writes of the tasks above a subgraph whose state a client changes: without the interrupts that the subgraph
 * raised. Returns only the writes that change.
 * @throws ServiceError `validation.failed` when the subgraph is not in progress at the thread's latest checkpoint,
 * because then no run would continue from its state
 */
export async function writesWithoutInterrupts(
  liveThread: LiveThread,
  ns: string,
): Promise<readonly PendingTaskWrites[]> {
  const changed: PendingTaskWrites[] = [];
  const segments = ns.split("|");
  for (const [depth, segment] of segments.entries()) {
    const above = segments.slice(0, depth).join("|");
    // oxlint-disable-next-line no-await-in-loop -- each level depends on the one above, and graphs are not nested deep
    const { head, writes } = await latestAt(liveThread, above);
    const task = segment.slice(segment.indexOf(":") + 1);
    const taskWrites = writes.find((one) => one.task === task);
    if (!head?.next.some(({ id }) => id === task) || taskWrites?.result !== undefined) {
      const message = `names no subgraph in progress at the thread's latest checkpoint: "${segment.slice(0, 200)}"`;
      throw invalidField(FIELD, message);
    }
    const interrupts = (taskWrites?.interrupts ?? []).filter((asked) => !isWithin(asked.ns, segments));
    if (taskWrites !== undefined && interrupts.length < taskWrites.interrupts.length)
      changed.push({ ...taskWrites, interrupts });
  }
  return changed;
}

const isWithin = (ns: readonly string[], segments: readonly string[]) =>
  segments.every((segment, i) => ns[i] === segment);

async function latestAt(
  liveThread: LiveThread,
  ns: string,
): Promise<Pick<CheckpointWithState, "head" | "writes">> {
  if (ns === "") return liveThread.position();
  const { journal } = liveThread.deps;
  await liveThread.lastWrite;
  const [head] = await journal.history(liveThread.key, { ns, limit: 1 });
  return {
    head: head ?? null,
    writes: head === undefined ? [] : await journal.writes(liveThread.key, ns, head.id),
  };
}

/** The interrupts of the root graph after `changed` has replaced earlier writes. */
export function interruptsAfter(
  before: InterruptsByTask,
  changed: readonly PendingTaskWrites[],
): InterruptsByTask {
  const after: Record<string, InterruptsByTask[string]> = { ...before };
  for (const { ns, task, interrupts } of changed) {
    if (ns !== "") continue;
    if (interrupts.length > 0) after[task] = interrupts;
    else delete after[task];
  }
  return after;
}
