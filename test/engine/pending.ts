import type { PendingTaskWrites } from "../../src/model/checkpoint.ts";
import type { Interrupt, InterruptsByTask } from "../../src/model/interrupt.ts";

/** What waits for an answer, as the thread's record holds it. */
export function pendingInterrupts(writes: readonly PendingTaskWrites[]): InterruptsByTask {
  const pending: Record<string, readonly Interrupt[]> = {};
  for (const { task, interrupts } of writes) if (interrupts.length > 0) pending[task] = interrupts;
  return pending;
}
