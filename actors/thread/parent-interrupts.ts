import type { TaskWrites } from "../../src/model/checkpoint.ts";
import { ServiceError } from "../../src/model/errors.ts";
import type { Interrupts } from "../../src/model/interrupt.ts";
import type { Position } from "../../src/ports/engine.ts";
import type { Cell } from "./live-thread.ts";

const FIELD = "checkpoint.checkpoint_ns";

/**
 * What the tasks above a subgraph hold of the questions that are asked in it, without these: its state is changed, and with it they are
 * gone. By namespace and task; of tasks that hold none nothing.
 * @throws ServiceError `validation.failed` when the subgraph is not at work where the thread stands: nothing would go on
 *   from its state
 */
export async function withoutQuestions(cell: Cell, ns: string): Promise<readonly TaskWrites[]> {
  const changed: TaskWrites[] = [];
  const segments = ns.split("|");
  for (const [depth, segment] of segments.entries()) {
    const above = segments.slice(0, depth).join("|");
    // oxlint-disable-next-line no-await-in-loop -- from the root down, and graphs are not nested deep
    const { head, writes } = await latestAt(cell, above);
    const task = segment.slice(segment.indexOf(":") + 1);
    const left = writes.find((one) => one.task === task);
    if (!head?.next.some(({ id }) => id === task) || left?.result !== undefined) {
      const message = `names no subgraph that is at work in the thread's latest state: "${segment.slice(0, 200)}"`;
      throw new ServiceError("validation.failed", `${FIELD} ${message}`, {
        fields: [{ at: FIELD, message }],
      });
    }
    const interrupts = (left?.interrupts ?? []).filter((asked) => !isWithin(asked.ns, segments));
    if (left !== undefined && interrupts.length < left.interrupts.length)
      changed.push({ ...left, interrupts });
  }
  return changed;
}

const isWithin = (ns: readonly string[], segments: readonly string[]) =>
  segments.every((segment, i) => ns[i] === segment);

async function latestAt(cell: Cell, ns: string): Promise<Pick<Position, "head" | "writes">> {
  if (ns === "") return cell.position();
  const { journal } = cell.deps;
  await cell.tail;
  const [head] = await journal.history(cell.key, { ns, limit: 1 });
  return {
    head: head ?? null,
    writes: head === undefined ? [] : await journal.writes(cell.key, ns, head.id),
  };
}

/** The root's questions once these leavings have taken the place of what was there. */
export function questionsAfter(before: Interrupts, changed: readonly TaskWrites[]): Interrupts {
  const after: Record<string, Interrupts[string]> = { ...before };
  for (const { ns, task, interrupts } of changed) {
    if (ns !== "") continue;
    if (interrupts.length > 0) after[task] = interrupts;
    else delete after[task];
  }
  return after;
}
