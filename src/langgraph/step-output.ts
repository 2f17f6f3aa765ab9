import { blank, type PlannedTask } from "../model/checkpoint.ts";
import type { PlainError } from "../model/errors.ts";
import type { RunRecord } from "../model/run.ts";
import type { NodeCall, Plan, Settled, Step, TaskOutcome } from "../ports/engine.ts";
import type { Stage } from "../ports/engine-host.ts";
import type { Called } from "./intercepted-call.ts";
import type { Chronicle } from "./execution-recorder.ts";

/** What is handed to the run's actor: its steps, its tasks, and what becomes of them. */

export function callOf(called: Called, record: RunRecord, tenant: string): NodeCall {
  const { task, name: node, ns, step, attempt } = called;
  const { run_id: run, thread_id: thread, assistant_id: assistant, graph_id: graph } = record;
  return {
    graph,
    engine: "langgraph",
    edition: 0,
    node,
    task,
    ns,
    run,
    thread,
    tenant,
    assistant,
    attempt: record.attempt,
    try: attempt,
    // LangGraph tries again by itself, and keeps the time of a try.
    tries: 1,
    timeout: null,
    subgraph: false,
    step,
    // What the node is given stays with LangGraph.
    input: null,
    config: {},
    context: {},
    resumes: [],
    steps: {},
    meta: {},
  };
}

export function plannedOf({ tasks }: Chronicle, { task: id, name, path, triggers }: Called): PlannedTask {
  const site = tasks.get(id);
  const planned = { id, name, path, triggers: site?.triggers ?? triggers };
  return site?.sent === undefined ? planned : { ...planned, input: site.sent };
}

/** `failure`: why the graph has ended, where that was before the task did. */
export function settledAs(chronicle: Chronicle, task: string, failure: PlainError | null): Settled {
  const place = chronicle.place(task);
  const writes = chronicle.left.at(place) ?? blank(place);
  chronicle.left.settle(place);
  const settled = { writes, emissions: [] } as const;
  // Of one within another, the failure is the other's.
  if (place.ns !== "" || writes.result !== undefined) return { kind: "done", ...settled };
  if (writes.interrupts.length > 0) return { kind: "interrupted", ...settled };
  const error = writes.error ?? failure;
  return error === null ? { kind: "done", ...settled } : { kind: "failed", ...settled, error };
}

/**
 * LangGraph stops an entrypoint as soon as one of its tasks has failed, and stores of it that it was stopped; what its body
 * threw is why the run fails.
 */
export function asThrown(settled: Settled, outcome: TaskOutcome): Settled {
  const isStopped = settled.kind === "failed" && settled.error?.error === "AbortError";
  return isStopped && outcome.kind === "failed" ? { ...settled, error: outcome.error } : settled;
}

/** All that has not been handed over, as the root graph's step; what is of graphs within goes ahead of it. */
export function stepOf(chronicle: Chronicle, stage: Stage, plan: Plan): Step {
  const { checkpoints, emissions, left, root } = chronicle;
  chronicle.checkpoints = [];
  chronicle.emissions = [];
  chronicle.moved = false;
  const writes = left.handOver(() => true);
  const inner = checkpoints.filter(({ ns }) => ns !== "");
  if (inner.length > 0) stage.tell({ checkpoints: inner, emissions: [], writes: [], tasks: [] });
  const own = checkpoints.filter(({ ns }) => ns === "");
  return { checkpoints: own, writes, emissions, plan, values: root.shown };
}
