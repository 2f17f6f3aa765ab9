import type { StopReason } from "../../src/model/run.ts";
import type {
  Execution,
  Subgraph,
  NodeCall,
  CheckpointWithState,
  TaskOutcome,
} from "../../src/ports/engine.ts";
import { andThen, type Eventually } from "../../src/ports/eventually.ts";
import { positionAtCheckpoint } from "./start-position.ts";
import type { GraphExecution, GraphLifecycle } from "./graph-execution.ts";
import type { OnSubgraphEnd } from "./task-runner.ts";

const NOWHERE: CheckpointWithState = { head: null, values: {}, writes: [] };

/**
 * The parent of a subgraph that runs as a task's node, for one attempt of the task: the subgraph's end becomes the
 * task's outcome.
 */
export class SubgraphAsTask implements GraphLifecycle {
  readonly ns: string;
  readonly #above: GraphExecution;
  readonly #call: NodeCall;
  /** The position that the subgraph reached in the task's previous attempt; undefined: there is none. */
  readonly #before: CheckpointWithState | undefined;
  readonly #ended: OnSubgraphEnd;
  readonly #inner: Subgraph;

  constructor(
    above: GraphExecution,
    call: NodeCall,
    before: CheckpointWithState | undefined,
    ended: OnSubgraphEnd,
  ) {
    this.#above = above;
    this.#call = call;
    this.#before = before;
    this.#ended = ended;
    this.#inner = above.execution.enter(call.task);
    this.ns = this.#inner.ns;
  }

  position(): Eventually<CheckpointWithState> {
    if (this.#before !== undefined) return this.#before;
    const { liveThread } = this.#above;
    const { from } = this.#inner;
    const start = () => (from === null ? NOWHERE : positionAtCheckpoint(liveThread, from));
    // If this attempt planned the task, the task is new, so its subgraph cannot have stored anything yet.
    if (this.#above.hasNewHead) return start();
    const { journal } = liveThread.deps;
    return journal
      .history(liveThread.key, { ns: this.ns, limit: 1 })
      .then(([head]): Eventually<CheckpointWithState> => {
        if (head === undefined) return start();
        liveThread.noteCheckpointId(head.id);
        return andThen(journal.values(liveThread.key, head), (values) =>
          andThen(journal.writes(liveThread.key, this.ns, head.id), (writes) => ({ head, values, writes })),
        );
      });
  }

  open(position: CheckpointWithState): Execution {
    return this.#inner.open(position);
  }

  close(graph: GraphExecution, stop: StopReason | null): void {
    const { attempt, failure, plan, actor } = graph;
    graph.revoke();
    attempt.subgraphs.delete(this.#call.task);
    const well = stop === null && failure === null && plan?.kind !== "paused";
    // If the subgraph has ended without an error, the step of the parent graph stores its result. With durability
    // `exit`, the subgraph's checkpoints are then not needed.
    if (well && attempt.run.kwargs.durability === "exit") attempt.pending.drop(this.ns);
    const outcome = this.#outcome(graph, stop);
    actor?.send({ type: "ENDED", ...endOf(outcome) });
    this.#ended(outcome, stop !== null);
  }

  #outcome(graph: GraphExecution, stop: StopReason | null): TaskOutcome {
    const { failure } = graph;
    if (stop !== null)
      return { kind: "failed", error: { error: "AbortError", message: "The run was stopped" } };
    if (failure !== null && !graph.isLoaded) return { kind: "failed", error: failure };
    return graph.execution.outcome(failure);
  }
}

function endOf({ kind }: TaskOutcome) {
  if (kind === "failed") return { status: "error", rest: "error" } as const;
  return { status: "success", rest: kind === "interrupted" ? "interrupted" : "success" } as const;
}
