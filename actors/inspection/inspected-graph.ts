import { chartValueOf } from "../../src/graph/chart-value-of-nodes.ts";
import { START } from "../../src/graph/definition-checks.ts";
import { END } from "../../src/graph/commands.ts";
import type { JsonObject } from "../../src/model/json.ts";
import type { StatechartDefinition } from "../../src/model/statechart.ts";
import type {
  Inspector,
  InspectedActor,
  InspectedEvent,
  InspectedState,
  InspectedStateValue,
} from "../../src/ports/inspector.ts";
import type { RunActorOutput, TaskEnd } from "../actor-events.ts";

/** The path of a node: the names of the subgraph nodes that lead to the node, and the node's own name. */
type Way = readonly string[];

/** The final status of the graph's actor, by the status of the run. */
const left = { success: "done", interrupted: "stopped", error: "error", timeout: "error" } as const;

/**
 * Shows the graph of one run to the inspector as a separate actor. Its state is the set of running nodes, or, for a
 * graph made from an XState machine, the state of the machine.
 */
export class InspectedGraph {
  readonly actor: InspectedActor;
  readonly #chart: StatechartDefinition;
  readonly #inspector: Inspector;
  readonly #values: () => JsonObject | undefined;
  /**
   * Returns the state of the machine that the graph is made from; undefined: the graph is not made from a machine, or
   * the machine has no state yet.
   */
  readonly #machineState: () => InspectedStateValue | undefined;
  /** Paths of running nodes, by task id. */
  readonly #running = new Map<string, Way>();
  /** Tasks of the last step that ended in another way than `done`, by task id. */
  readonly #stuck = new Map<string, { readonly way: Way; readonly end: TaskEnd }>();
  #shown: string | null = null;
  #value: InspectedStateValue = START;

  constructor(
    actor: InspectedActor,
    chart: StatechartDefinition,
    inspector: Inspector,
    values: () => JsonObject | undefined,
    machineState: () => InspectedStateValue | undefined,
  ) {
    this.actor = actor;
    this.#chart = chart;
    this.#inspector = inspector;
    this.#values = values;
    this.#machineState = machineState;
  }

  /** Announces the graph to the inspector. The caller MUST first call `began` for each task that already runs. */
  announce(): void {
    this.#shown = "";
    this.#settle();
    this.#inspector.actor(this.actor, this.#state("active"));
  }

  began(task: string, way: Way): void {
    if (this.#running.size === 0) this.#stuck.clear();
    this.#running.set(task, way);
    if (this.#shown === null) return;
    const event = { type: `${way.join("/")}.start`, task };
    this.#inspector.event(this.actor, event, task);
    this.#show(event);
  }

  ended(task: string, end: TaskEnd): void {
    const way = this.#running.get(task);
    if (way === undefined) return;
    this.#running.delete(task);
    if (end !== "done") this.#stuck.set(task, { way, end });
    const event = { type: `${way.join("/")}.${end}`, task };
    this.#inspector.event(this.actor, event, task);
    // If no node runs, the step is over. The state is then shown when the nodes of the next step start.
    if (this.#running.size > 0) this.#show(event);
  }

  /** Shows the end of the run. `output` is undefined if the run was abandoned because its thread failed. */
  close(output: RunActorOutput | undefined): void {
    const event = { type: `run.${output?.status ?? "stopped"}` };
    this.#inspector.event(this.actor, event, this.actor.parent);
    this.#running.clear();
    const ends = [...new Set([...this.#stuck.values()].map(({ end }) => end))];
    const done = output?.status === "success" && output.rest === "success";
    if (done) this.#value = END;
    else if (this.#stuck.size > 0)
      this.#value = chartValueOf(
        this.#chart,
        [...this.#stuck.values()].map(({ way }) => way),
      );
    const paused = output?.status === "success" && !done;
    const status = output === undefined || paused ? "stopped" : left[output.status];
    const tags = done ? [] : paused ? ["interrupted"] : ends;
    this.#inspector.snapshot(this.actor, this.#state(status, tags), event);
  }

  #show(event: InspectedEvent): void {
    if (this.#settle()) this.#inspector.snapshot(this.actor, this.#state("active"), event);
  }

  /**
   * Updates the state from the running tasks. Returns whether there is a new state to show: thousands of tasks may run
   * the same node, and then most starts and ends change nothing.
   */
  #settle(): boolean {
    if (this.#running.size === 0) return false;
    const ways = new Map<string, Way>();
    for (const way of this.#running.values()) ways.set(way.join("|"), way);
    const shown = [...ways.keys()].sort().join(" ") + JSON.stringify(this.#machineState() ?? "");
    if (shown === this.#shown) return false;
    this.#shown = shown;
    this.#value = chartValueOf(this.#chart, ways.values());
    return true;
  }

  #state(status: InspectedState["status"], tags: readonly string[] = []): InspectedState {
    const { thread, run } = this.actor;
    const values = this.#values();
    return {
      status,
      value: this.#machineState() ?? this.#value,
      context: { thread, run },
      children: [],
      tags,
      ...(values !== undefined && { values }),
    };
  }
}
