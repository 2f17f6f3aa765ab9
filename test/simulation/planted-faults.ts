import { RunAttempt } from "../../actors/run/attempt.ts";
import type { GraphExecution } from "../../actors/run/graph-execution.ts";
import { changeRun } from "../../src/model/run.ts";
import { changeThread } from "../../src/model/thread.ts";

/**
 * Plants a fault that a graceful stop once had: a run whose last node has returned counts as halted even while its end
 * is being stored, and is then left to the next start with its old record. Returns a function that removes the fault.
 */
export function plantParkedEnding(): () => void {
  const { prototype } = RunAttempt;
  const sound = {
    isHalted: Object.getOwnPropertyDescriptor(prototype, "isHalted") as PropertyDescriptor,
    park: Object.getOwnPropertyDescriptor(prototype, "park") as PropertyDescriptor,
  };
  Object.defineProperties(prototype, {
    isHalted: {
      configurable: true,
      get(this: RunAttempt): boolean {
        const graphs = [this.graph(null) as GraphExecution, ...this.subgraphs.values()];
        return graphs.every(({ tasks }) => tasks.bodyCount === 0);
      },
    },
    park: {
      configurable: true,
      value(this: RunAttempt): Promise<void> {
        const left = changeRun(this.run, { parked: this.run.parked + 1 });
        this.liveThread.runs.set(this.id, left);
        // Bypasses the check of the live thread, which would refuse it. The journal refuses it once the end is stored.
        const { key, deps, record } = this.liveThread;
        const fence = { epoch: record.epoch, seq: record.seq };
        const thread = changeThread(record, { seq: record.seq + 1 });
        this.liveThread.record = thread;
        return deps.journal.append({ key, fence, kind: "left", durable: true, thread, runs: [left] });
      },
    },
  });
  return () => void Object.defineProperties(prototype, sound);
}

/**
 * Plants a fault: a graceful stop does not learn that a run has paused, and waits its whole time for that run. Returns a
 * function that removes the fault.
 */
export function plantLostPause(): () => void {
  const { prototype } = RunAttempt;
  const checkHalted = Object.getOwnPropertyDescriptor(prototype, "checkHalted") as PropertyDescriptor;
  Object.defineProperty(prototype, "checkHalted", { configurable: true, value: () => undefined });
  return () => void Object.defineProperty(prototype, "checkHalted", checkHalted);
}
