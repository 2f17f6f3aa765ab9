import { asStateValue, chartValueOf } from "../graph/chart-value-of-nodes.ts";
import { START } from "../graph/definition-checks.ts";
import { END } from "../graph/commands.ts";
import type { JsonObject } from "../model/json.ts";
import type { CheckpointHead } from "../model/checkpoint.ts";
import { isTerminal, type RunRecord } from "../model/run.ts";
import type { StatechartDefinition } from "../model/statechart.ts";
import { hasWork, type ThreadRecord } from "../model/thread.ts";
import type { ActorSnapshot, InspectedActor, InspectedState } from "../ports/inspector.ts";

const ACTIVE: Pick<InspectedState, "status" | "children" | "tags"> = {
  status: "active",
  children: [],
  tags: [],
};

/** A thread's stored state, in the form of a snapshot of its actor. */
export function storedThreadActor(record: ThreadRecord): ActorSnapshot {
  const { thread_id: thread, rest, active, queue } = record;
  const actor: InspectedActor = {
    id: thread,
    kind: "thread",
    name: "thread",
    parent: null,
    thread,
    run: null,
    machine: "thread",
  };
  const value = hasWork(record) ? "pending" : rest;
  return {
    actor,
    state: { ...ACTIVE, value, context: { thread, active, queue: queue.slice(0, 20), stop: null, rest } },
  };
}

/**
 * The stored state of a run and of its graph, in the form of snapshots of their actors. `head`: the thread's latest checkpoint.
 * `values`: the state at this checkpoint; empty if the chart has no `valueKey`, or the checkpoint belongs to another run.
 */
export function storedRunActors(
  run: RunRecord,
  head: CheckpointHead | undefined,
  chart: StatechartDefinition | undefined,
  values: JsonObject,
): readonly ActorSnapshot[] {
  const { run_id: id, thread_id: thread, graph_id: graph } = run;
  const base = { thread, run: id } as const;
  const status = isTerminal(run.status) ? "done" : "active";
  const shown: ActorSnapshot = {
    actor: { ...base, id, kind: "run", name: "run", parent: thread, machine: "run" },
    state: { ...ACTIVE, status, value: run.status, context: { ...base, attempt: run.attempt } },
  };
  if (chart === undefined) return [shown];
  const actor: InspectedActor = {
    ...base,
    id: `graph:${id}`,
    kind: "graph",
    name: graph,
    parent: id,
    machine: `graph:${graph}`,
  };
  return [shown, { actor, state: { ...ACTIVE, context: base, ...graphStateAt(run, head, chart, values) } }];
}

/**
 * The state of a graph in its statechart:
 * - at the start, if the run is pending;
 * - else the machine's own state, if the graph is made from an XState machine;
 * - else the nodes that run next, if the latest checkpoint belongs to this run and has such nodes;
 * - else the end if the run has succeeded, and the start if not.
 */
function graphStateAt(
  run: RunRecord,
  head: CheckpointHead | undefined,
  chart: StatechartDefinition,
  values: JsonObject,
): Pick<InspectedState, "status" | "value" | "tags"> {
  const next = head?.run_id === run.run_id ? head.next.map(({ name }) => [name]) : [];
  const own = chart.valueKey === undefined ? undefined : asStateValue(values[chart.valueKey]);
  const value = own ?? (next.length > 0 ? chartValueOf(chart, next) : run.status === "success" ? END : START);
  switch (run.status) {
    case "success":
      return next.length > 0
        ? { status: "stopped", value, tags: ["interrupted"] }
        : { status: "done", value, tags: [] };
    case "interrupted":
      return { status: "stopped", value, tags: ["cancelled"] };
    case "pending":
      return { status: "active", value: START, tags: [] };
    default:
      return { status: "error", value, tags: ["failed"] };
  }
}
