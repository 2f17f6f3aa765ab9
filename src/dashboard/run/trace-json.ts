import type { JsonRecord, Run } from "../api/records.ts";
import type { Task, Trace } from "../live/trace.ts";
import type { TaskCall, CallsPerTask, CallTotals } from "./run-calls.ts";
import { taskDurationMs, type TimelineGroup, type TimelineRow } from "./timeline-rows.ts";

export interface TraceParts {
  readonly run: Run;
  readonly trace: Trace;
  readonly groups: readonly TimelineGroup[];
  readonly calls: CallsPerTask;
  readonly totals: CallTotals;
  readonly path: ReadonlySet<Task>;
  /**
   * Milliseconds between the question that this run answers and the run's creation; null if the run answers no
   * question.
   */
  readonly questionWaitMs: number | null;
  readonly numberOf: (step: number) => number;
}

const timeOf = (at: number | null): string | null => (at === null ? null : new Date(at).toISOString());

/**
 * Returns a run as nested JSON: its supersteps, their tasks with the tasks of subgraphs, and the model and tool calls
 * of each task.
 */
export function traceAsJson(parts: TraceParts): JsonRecord {
  const { run, trace, groups, totals, numberOf } = parts;
  return {
    run_id: run.run_id,
    thread_id: run.thread_id,
    graph_id: run.metadata["graph_id"] ?? null,
    status: run.status,
    attempt: trace.attempt,
    created_at: run.created_at,
    updated_at: run.updated_at,
    error: trace.error,
    question_wait_ms: parts.questionWaitMs,
    model_calls: totals.calls,
    tool_calls: totals.toolCalls,
    tokens_in: totals.tokensIn,
    tokens_out: totals.tokensOut,
    cost_usd: totals.cost,
    retries: totals.retries,
    supersteps: groups.map(({ step, lines }) => ({
      step: numberOf(step),
      tasks: nested(lines, 0, parts),
    })),
  };
}

function nested(lines: readonly TimelineRow[], depth: number, parts: TraceParts): readonly JsonRecord[] {
  const heads = lines.flatMap((row, at) => (row.depth === depth ? [at] : []));
  return heads.flatMap((at, i) => {
    const row = lines[at];
    return row === undefined
      ? []
      : [
          {
            ...recordOf(row.task, parts),
            tasks: nested(lines.slice(at + 1, heads[i + 1]), depth + 1, parts),
          },
        ];
  });
}

const recordOf = (task: Task, { calls, path }: TraceParts): JsonRecord => ({
  id: task.id,
  name: task.name,
  status: task.status,
  started_at: timeOf(task.begunAt),
  ended_at: timeOf(task.endedAt),
  duration_ms: taskDurationMs(task),
  tries: task.tries,
  slowest_path: path.has(task),
  error: task.error,
  interrupts: task.interrupts,
  input: task.input ?? null,
  result: task.result ?? null,
  log: task.lines,
  calls: (calls.get(task.id) ?? []).map(callRecordOf),
});

function callRecordOf(call: TaskCall): JsonRecord {
  if (call.kind === "tool") return { ...call };
  const { id, models, tokensIn, tokensOut, cost, text } = call;
  const tokens = { tokens_in: tokensIn, tokens_out: tokensOut, cost_usd: cost };
  return { kind: "model", id, model: models[0] ?? null, ...tokens, text };
}
