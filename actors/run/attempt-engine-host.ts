import type { Fact } from "../../src/model/run-event.ts";
import type { CheckpointHead, Checkpoint } from "../../src/model/checkpoint.ts";
import type { CheckpointWithState } from "../../src/ports/engine.ts";
import type { EngineReport, EngineHost } from "../../src/ports/engine-host.ts";
import { andThen } from "../../src/ports/eventually.ts";
import type { HistoryQuery } from "../../src/ports/journal.ts";
import type { RunAttempt } from "./attempt.ts";

/**
 * The engine host of one attempt of a run. A graph that plans its own steps (LangGraph.js) reads checkpoints through
 * this host, and passes to it what has to be stored.
 */
export class AttemptEngineHost implements EngineHost {
  readonly #attempt: RunAttempt;

  constructor(attempt: RunAttempt) {
    this.#attempt = attempt;
  }

  async read(ns: string, id: string | null): Promise<CheckpointWithState | null> {
    const { liveThread } = this.#attempt;
    const { journal } = liveThread.deps;
    if (id === null) {
      if (ns === "")
        return liveThread.record.checkpoint === null ? null : this.read(ns, liveThread.record.checkpoint);
      const [latest] = await journal.history(liveThread.key, { ns, limit: 1 });
      return latest === undefined ? null : this.#position(ns, latest);
    }
    const checkpoint = await journal.checkpoint(liveThread.key, ns, id);
    return checkpoint === undefined ? null : this.#position(ns, checkpoint);
  }

  async history(query: HistoryQuery): Promise<readonly CheckpointWithState[]> {
    const { liveThread } = this.#attempt;
    const found = await liveThread.deps.journal.history(liveThread.key, query);
    return Promise.all(found.map((checkpoint) => this.#position(query.ns, checkpoint)));
  }

  async #position(ns: string, checkpoint: Checkpoint): Promise<CheckpointWithState> {
    const { liveThread } = this.#attempt;
    const { journal } = liveThread.deps;
    const head: CheckpointHead = checkpoint;
    liveThread.noteCheckpointId(head.id);
    const position = await andThen(journal.values(liveThread.key, checkpoint), (values) =>
      andThen(journal.writes(liveThread.key, ns, head.id), (writes) => ({ head, values, writes })),
    );
    this.#attempt.noteStartPosition(position);
    return position;
  }

  report({ checkpoints, writes, emissions, tasks, ending }: EngineReport): void {
    const { alive, pending, root } = this.#attempt;
    if (!alive) return;
    for (const made of checkpoints) pending.addCheckpoints(made.ns, [made], true);
    for (const taskWrites of writes) pending.addWrites(taskWrites);
    pending.emissions.push(...emissions);
    if (ending === undefined && (checkpoints.length > 0 || emissions.length > 0)) this.#attempt.flushSoon();
    if (tasks.length > 0) root.addTasks(tasks);
  }

  emit(fact: Fact): number {
    return this.#attempt.emit(fact);
  }

  soon(task: () => void): void {
    this.#attempt.liveThread.deps.scheduler.soon(task);
  }
}
