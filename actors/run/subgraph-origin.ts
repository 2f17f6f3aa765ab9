import type { Stop } from "../../src/model/run.ts";
import type { Execution, Inner, NodeCall, Position, TaskOutcome } from "../../src/ports/engine.ts";
import { andThen, type Eventually } from "../../src/ports/eventually.ts";
import { stillAt } from "./start-position.ts";
import type { Level, Origin } from "./graph-execution.ts";
import type { Ended } from "./task-runner.ts";

const NOWHERE: Position = { head: null, values: {}, writes: [] };

/** The origin of a subgraph that is a task's node, for one try of the task: its end becomes the task's outcome. */
export class InnerOrigin implements Origin {
  readonly ns: string;
  readonly #above: Level;
  readonly #call: NodeCall;
  /** The position that the previous try reached. */
  readonly #before: Position | undefined;
  readonly #ended: Ended;
  readonly #inner: Inner;

  constructor(above: Level, call: NodeCall, before: Position | undefined, ended: Ended) {
    this.#above = above;
    this.#call = call;
    this.#before = before;
    this.#ended = ended;
    this.#inner = above.execution.enter(call.task);
    this.ns = this.#inner.ns;
  }

  position(): Eventually<Position> {
    if (this.#before !== undefined) return this.#before;
    const { cell } = this.#above;
    const { from } = this.#inner;
    const start = () => (from === null ? NOWHERE : stillAt(cell, from));
    // This attempt planned the task, so it is new: nothing can be stored for it.
    if (this.#above.moved) return start();
    const { journal } = cell.deps;
    return journal.history(cell.key, { ns: this.ns, limit: 1 }).then(([head]): Eventually<Position> => {
      if (head === undefined) return start();
      cell.saw(head.id);
      return andThen(journal.values(cell.key, head), (values) =>
        andThen(journal.writes(cell.key, this.ns, head.id), (writes) => ({ head, values, writes })),
      );
    });
  }

  open(position: Position): Execution {
    return this.#inner.open(position);
  }

  close(level: Level, stop: Stop | null): void {
    const { attempt, failure, plan, actor } = level;
    level.revoke();
    attempt.levels.delete(this.#call.task);
    const well = stop === null && failure === null && plan?.kind !== "paused";
    // It has ended, and the step of the graph above stores the result. With durability `exit`, its own checkpoints
    // are not needed.
    if (well && attempt.run.kwargs.durability === "exit") attempt.drop(this.ns);
    const outcome = this.#outcome(level, stop);
    actor?.send({ type: "ENDED", ...endOf(outcome) });
    this.#ended(outcome, stop !== null);
  }

  #outcome(level: Level, stop: Stop | null): TaskOutcome {
    const { failure } = level;
    if (stop !== null)
      return { kind: "failed", error: { error: "AbortError", message: "The run was stopped" } };
    if (failure !== null && !level.loaded) return { kind: "failed", error: failure };
    return level.execution.outcome(failure);
  }
}

function endOf({ kind }: TaskOutcome) {
  if (kind === "failed") return { status: "error", rest: "error" } as const;
  return { status: "success", rest: kind === "interrupted" ? "interrupted" : "success" } as const;
}
