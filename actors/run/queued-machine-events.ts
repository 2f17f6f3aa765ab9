import type { MachineMailbox, WaitingEvent } from "../../src/model/machine-mailbox.ts";
import type { JsonObject } from "../../src/model/json.ts";
import { graphCommandOf } from "../../src/model/run.ts";
import type { RunAttempt } from "./attempt.ts";

/**
 * The mailbox of an attempt: the machine events of the runs that wait in the thread's queue behind the attempt's own
 * run.
 */
export class QueuedMachineEvents implements MachineMailbox {
  readonly #attempt: RunAttempt;
  readonly #watching = new Set<() => void>();

  constructor(attempt: RunAttempt) {
    this.#attempt = attempt;
  }

  get values(): JsonObject {
    return this.#attempt.root.values;
  }

  waiting(): readonly WaitingEvent[] {
    const { liveThread, alive } = this.#attempt;
    const found: WaitingEvent[] = [];
    if (!alive) return found;
    const { assistant_id, graph_id, cancel } = this.#attempt.run;
    if (cancel !== null) return found;
    for (const id of liveThread.record.queue) {
      const next = liveThread.runs.get(id);
      const isEvent = next?.kwargs.event === true;
      if (!isEvent || next.assistant_id !== assistant_id || next.graph_id !== graph_id) break;
      const { timer } = next.kwargs;
      const event = graphCommandOf(next.kwargs)?.resume;
      found.push(timer === undefined ? { run: id, event } : { run: id, timer });
    }
    return found;
  }

  watch(arrived: () => void): () => void {
    this.#watching.add(arrived);
    return () => void this.#watching.delete(arrived);
  }

  /** Notifies the watchers. Called when a change of the queue is stored. */
  changed(): void {
    for (const arrived of this.#watching) arrived();
  }
}
