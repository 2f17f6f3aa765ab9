import type { Fact } from "../../src/model/run-event.ts";
import type { CheckpointHead, Checkpoint } from "../../src/model/checkpoint.ts";
import type { Position } from "../../src/ports/engine.ts";
import type { News, Stage } from "../../src/ports/engine-host.ts";
import { andThen } from "../../src/ports/eventually.ts";
import type { HistoryQuery } from "../../src/ports/journal.ts";
import type { Cell } from "../thread/live-thread.ts";
import type { Level } from "./graph-execution.ts";
import type { Staged } from "./pending-commit.ts";

/** The parts of an attempt that its engine host uses. */
interface StagedAttempt {
  readonly cell: Cell;
  readonly alive: boolean;
  found(position: Position): void;
  emit(fact: Fact): number;
  flushSoon(): void;
}

/** The engine host of one attempt: a graph that drives itself reads checkpoints from it, and hands it what to store. */
export class AttemptStage implements Stage {
  readonly #attempt: StagedAttempt;
  readonly #root: Level;
  readonly #staged: Staged;

  constructor(attempt: StagedAttempt, root: Level, staged: Staged) {
    this.#attempt = attempt;
    this.#root = root;
    this.#staged = staged;
  }

  async read(ns: string, id: string | null): Promise<Position | null> {
    const { cell } = this.#attempt;
    const { journal } = cell.deps;
    if (id === null) {
      if (ns === "") return cell.record.checkpoint === null ? null : this.read(ns, cell.record.checkpoint);
      const [latest] = await journal.history(cell.key, { ns, limit: 1 });
      return latest === undefined ? null : this.#position(ns, latest);
    }
    const checkpoint = await journal.checkpoint(cell.key, ns, id);
    return checkpoint === undefined ? null : this.#position(ns, checkpoint);
  }

  async history(query: HistoryQuery): Promise<readonly Position[]> {
    const { cell } = this.#attempt;
    const found = await cell.deps.journal.history(cell.key, query);
    return Promise.all(found.map((checkpoint) => this.#position(query.ns, checkpoint)));
  }

  async #position(ns: string, checkpoint: Checkpoint): Promise<Position> {
    const { cell } = this.#attempt;
    const { journal } = cell.deps;
    const head: CheckpointHead = checkpoint;
    cell.saw(head.id);
    const position = await andThen(journal.values(cell.key, checkpoint), (values) =>
      andThen(journal.writes(cell.key, ns, head.id), (writes) => ({ head, values, writes })),
    );
    this.#attempt.found(position);
    return position;
  }

  tell({ checkpoints, writes, emissions, tasks, ending }: News): void {
    if (!this.#attempt.alive) return;
    for (const made of checkpoints) this.#staged.take(made.ns, [made], true);
    for (const left of writes) this.#staged.put(left);
    this.#staged.emissions.push(...emissions);
    if (ending === undefined && (checkpoints.length > 0 || emissions.length > 0)) this.#attempt.flushSoon();
    if (tasks.length > 0) this.#root.join(tasks);
  }

  emit(fact: Fact): number {
    return this.#attempt.emit(fact);
  }

  soon(task: () => void): void {
    this.#attempt.cell.deps.scheduler.soon(task);
  }
}
