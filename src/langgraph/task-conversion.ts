import { emptyWrites, type PlannedTask } from "../model/checkpoint.ts";
import type { PlainError } from "../model/errors.ts";
import type { RunRecord } from "../model/run.ts";
import type { NodeCall, Plan, SettledTask, EngineStep, TaskOutcome } from "../ports/engine.ts";
import type { EngineHost } from "../ports/engine-host.ts";
import type { InterceptedCall } from "./intercepted-call.ts";
import type { ExecutionRecorder } from "./execution-recorder.ts";

/**
 * Creates the {@link NodeCall} for LangGraph's call of a node.
 * @param tries how often LangGraph has called this task in this attempt of the run. Used as the number of the task's attempt if LangGraph
 * does not report that number
 */
export function nodeCallOf(
  called: InterceptedCall,
  tries: number,
  record: RunRecord,
  tenant: string,
): NodeCall {
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
    try: attempt ?? tries,
    // LangGraph itself handles retries and timeouts.
    tries: 1,
    timeout: null,
    subgraph: false,
    step,
    // LangGraph passes the input to the node by itself.
    input: null,
    config: {},
    context: {},
    resumes: [],
    steps: {},
    meta: {},
  };
}

export function plannedTaskOfInterceptedCall(
  { tasks }: ExecutionRecorder,
  { task: id, name, path, triggers }: InterceptedCall,
): PlannedTask {
  const site = tasks.get(id);
  const planned = { id, name, path, triggers: site?.triggers ?? triggers };
  return site?.sent === undefined ? planned : { ...planned, input: site.sent };
}

/**
 * The outcome of a task, from its recorded writes.
 * @param failure the error that ended the graph before the task had ended; null if there is none
 */
export function settledTaskOfWrites(
  recorder: ExecutionRecorder,
  task: string,
  failure: PlainError | null,
): SettledTask {
  const place = recorder.place(task);
  const writes = recorder.pendingWrites.get(place) ?? emptyWrites(place);
  recorder.pendingWrites.markHandedOver(place);
  const settled = { writes, emissions: [] } as const;
  // The failure of a subgraph's task is reported by the task that contains the subgraph.
  if (place.ns !== "" || writes.result !== undefined) return { kind: "done", ...settled };
  if (writes.interrupts.length > 0) return { kind: "interrupted", ...settled };
  const error = writes.error ?? failure;
  return error === null ? { kind: "done", ...settled } : { kind: "failed", ...settled, error };
}

/**
 * The outcome of a task, with the error of its node function instead of an AbortError. When a task of an entrypoint (functional API) fails,
 * LangGraph stops the entrypoint, and stores an AbortError for it.
 */
export function withBodyError(settled: SettledTask, outcome: TaskOutcome): SettledTask {
  const isStopped = settled.kind === "failed" && settled.error?.error === "AbortError";
  return isStopped && outcome.kind === "failed" ? { ...settled, error: outcome.error } : settled;
}

/**
 * Creates a step of the root graph from everything that was not passed to the run's actor yet. Checkpoints of subgraphs are reported before
 * the step.
 */
export function takeRecordedStep(recorder: ExecutionRecorder, stage: EngineHost, plan: Plan): EngineStep {
  const { checkpoints, emissions, pendingWrites, root } = recorder;
  recorder.checkpoints = [];
  recorder.emissions = [];
  recorder.hasAdvanced = false;
  const writes = pendingWrites.takeChanged(() => true);
  const inner = checkpoints.filter(({ ns }) => ns !== "");
  if (inner.length > 0) stage.report({ checkpoints: inner, emissions: [], writes: [], tasks: [] });
  const own = checkpoints.filter(({ ns }) => ns === "");
  return { checkpoints: own, writes, emissions, plan, values: root.visibleState };
}
