import { useRef, useState } from "preact/hooks";
import { getDashboardSettings } from "../api/client.ts";
import { hasRunEnded, type Run } from "../api/records.ts";
import { useNow } from "../app/clock.ts";
import { replaceQuery, currentLocation } from "../app/page-location.ts";
import type { RunSubscription } from "../live/run-subscription.ts";
import { TASK_STATUS_TEXTS } from "../live/status-texts.ts";
import type { Task } from "../live/trace.ts";
import { CopyButton } from "../components/copy-button.tsx";
import { EmptyState } from "../components/empty-state.tsx";
import { formatDuration } from "../components/duration.ts";
import { useKeyPress } from "../components/use-key-press.ts";
import { useResource } from "../components/use-resource.ts";
import { toOneLine } from "../components/one-line-text.ts";
import { TaskDetail } from "./task-detail.tsx";
import {
  type TaskCall,
  type CallsPerTask,
  callContains,
  callsByTask,
  formatCost,
  formatCount,
  callTotalsOf,
  UNNAMED_MODEL,
} from "./run-calls.ts";
import { RunFindings } from "./run-findings.tsx";
import { retriesText, RunTotalsView } from "./run-totals.tsx";
import { criticalPath } from "./critical-path.ts";
import { traceAsJson } from "./trace-json.ts";
import {
  firstRows,
  type TimelineGroup,
  timelineGroups,
  taskContains,
  createStepNumbering,
  type TimeRange,
  timeRangeOf,
  slowestTaskOf,
  axisTicksOf,
  questionWaitMs,
} from "./timeline-rows.ts";

const MAX_ZOOM = 64;
/** The number of tasks that are shown before the user asks for more. */
const MAX_TASKS = 300;

/**
 * The timeline of a run: its supersteps with their tasks on a time axis, the model and tool calls of each task, and
 * the details of the selected task or superstep.
 */
export function TimelineTab({ watch, run }: { readonly watch: RunSubscription; readonly run: Run }) {
  const [zoom, setZoom] = useState(1);
  const [text, setText] = useState("");
  const [most, setMost] = useState(MAX_TASKS);
  const search = useRef<HTMLInputElement>(null);
  const clock = useNow(!hasRunEnded(run));
  // Reading the counter renders this component again after each event. The run's record alone would not: for an ended
  // run, it no longer changes while the events arrive.
  void watch.changes.count;
  const { trace } = watch;
  const { query } = currentLocation.value;
  const groups = timelineGroups(trace);
  const numberOf = createStepNumbering(run, groups);
  const all = groups.flatMap(({ lines }) => lines.map(({ task }) => task));
  const slowest = slowestTaskOf(groups);
  const path = criticalPath(groups);
  const { value: settings } = useResource(getDashboardSettings, []);
  const calls = callsByTask(trace, groups, settings?.prices ?? {});
  const totals = callTotalsOf(calls, all);
  const isFound = (task: Task) =>
    taskContains(trace, task, text) || (calls.get(task.id) ?? []).some((call) => callContains(call, text));
  const found = text === "" ? all : all.filter(isFound);
  const step = query.get("step");
  const chosen = all.find(({ id }) => id === query.get("task")) ?? null;
  const wanted = chosen === null ? all.findIndex((task) => String(task.step) === step) : all.indexOf(chosen);
  const shown = firstRows(groups, Math.max(most, wanted + MAX_TASKS / 10));
  const hidden = all.length - shown.reduce((sum, { lines }) => sum + lines.length, 0);
  const dimmed = new Set(text === "" ? [] : all);
  for (const task of found) dimmed.delete(task);
  const range = timeRangeOf(run, trace, hasRunEnded(run) ? null : clock);
  const wait = questionWaitMs(run, trace);
  const json = () =>
    JSON.stringify(
      traceAsJson({ run, trace, groups, calls, totals, path, questionWaitMs: wait, numberOf }),
      null,
      2,
    );
  const choose = (task: Task | null) => replaceQuery({ task: task?.id ?? null, step: task?.step ?? null });
  useKeyPress((key) => {
    const list = found.length > 0 ? found : all;
    const at = chosen === null ? -1 : list.indexOf(chosen);
    if (key === "ArrowDown" || key === "j") choose(list[Math.min(list.length - 1, at + 1)] ?? null);
    else if (key === "ArrowUp" || key === "k") choose(list[Math.max(0, at - 1)] ?? null);
    else if (key === "Escape") choose(null);
    else if (key === "+" || key === "=") setZoom(Math.min(MAX_ZOOM, zoom * 2));
    else if (key === "-") setZoom(Math.max(1, zoom / 2));
    else if (key === "/") search.current?.focus();
    else return false;
    return true;
  });
  return (
    <div class={`timeline ${chosen === null && step === null ? "" : "with-detail"}`}>
      <div class="lines">
        <div class="bar tools">
          <input
            ref={search}
            type="search"
            aria-label="Search in the run"
            placeholder="Search in the run ( / )"
            value={text}
            onInput={({ currentTarget }) => setText(currentTarget.value)}
          />
          {text !== "" && (
            <span class="dim" role="status">
              {found.length} of {all.length}
            </span>
          )}
          <span class="space" />
          <span class="dim keys">↑ ↓ task · + − zoom · Esc close</span>
          <CopyButton text={json} label="trace as JSON" shown="Copy trace as JSON" />
          <div class="zoom" role="group" aria-label="Zoom">
            <button
              type="button"
              class="quiet"
              aria-label="Zoom out"
              disabled={zoom === 1}
              onClick={() => setZoom(Math.max(1, zoom / 2))}
            >
              −
            </button>
            <span>{zoom}×</span>
            <button
              type="button"
              class="quiet"
              aria-label="Zoom in"
              disabled={zoom >= MAX_ZOOM}
              onClick={() => setZoom(Math.min(MAX_ZOOM, zoom * 2))}
            >
              +
            </button>
          </div>
        </div>
        <RunFindings
          failed={all.findLast(({ status }) => status === "failed") ?? null}
          error={trace.error}
          slowest={slowest}
          onChoose={choose}
        />
        <RunTotalsView totals={totals} path={path} waiting={watch.waiting.value} since={trace.endedAt} />
        {groups.length === 0 ? (
          <EmptyState
            title={
              run.status === "pending"
                ? "The run is queued."
                : hasRunEnded(run)
                  ? "No superstep was run."
                  : "Starting…"
            }
          />
        ) : (
          <div class="chart" tabIndex={-1}>
            {wait !== null && (
              <p class="wait-mark" title="From the checkpoint with the question to its answer">
                waited {formatDuration(wait)} for the answer
              </p>
            )}
            <Axis range={range} zoom={zoom} />
            {shown.map((group) => (
              <Superstep
                key={group.step}
                group={group}
                number={numberOf(group.step)}
                range={range}
                zoom={zoom}
                now={clock}
                chosen={chosen}
                isChosen={chosen === null && step === String(group.step)}
                slowest={slowest}
                path={path}
                calls={calls}
                isDim={(task) => dimmed.has(task)}
                isCallDim={(call) => text !== "" && !callContains(call, text)}
                onChoose={choose}
                onStep={() => replaceQuery({ step: group.step, task: null })}
              />
            ))}
            {hidden > 0 && (
              <button type="button" class="quiet" onClick={() => setMost(most + 5 * MAX_TASKS)}>
                {formatCount(hidden)} more tasks
              </button>
            )}
          </div>
        )}
      </div>
      {(chosen !== null || step !== null) && (
        <TaskDetail
          trace={trace}
          run={run}
          task={chosen}
          step={chosen?.step ?? Number(step)}
          numberOf={numberOf}
          onClose={() => choose(null)}
        />
      )}
    </div>
  );
}

function Axis({ range, zoom }: { readonly range: TimeRange; readonly zoom: number }) {
  const length = range.to - range.from;
  return (
    <div class="line axis" aria-hidden="true">
      <span class="label" />
      <span class="track" style={{ width: `${zoom * 100}%` }}>
        {axisTicksOf(range, 5 * zoom)
          // There is no room for a label at the very end of the axis.
          .filter((at) => at < length * (1 - 0.1 / zoom))
          .map((at) => (
            <span key={at} class="tick" style={{ left: `${(at / length) * 100}%` }}>
              {formatDuration(at).replace("<1 ms", "0")}
            </span>
          ))}
      </span>
    </div>
  );
}

interface SuperstepProps {
  readonly group: TimelineGroup;
  readonly number: number;
  readonly range: TimeRange;
  readonly zoom: number;
  readonly now: number;
  readonly chosen: Task | null;
  readonly isChosen: boolean;
  readonly slowest: Task | null;
  readonly path: ReadonlySet<Task>;
  readonly calls: CallsPerTask;
  readonly isDim: (task: Task) => boolean;
  readonly isCallDim: (call: TaskCall) => boolean;
  readonly onChoose: (task: Task) => void;
  readonly onStep: () => void;
}

function Superstep(props: SuperstepProps) {
  const { group, number, range, zoom, now, chosen, isChosen, slowest, path, calls } = props;
  const { isDim, isCallDim, onChoose, onStep } = props;
  const length = range.to - range.from;
  return (
    <section class="superstep" aria-label={`Superstep ${number}`}>
      <button type="button" class="quiet step" aria-pressed={isChosen} onClick={onStep}>
        superstep {number}
      </button>
      {group.lines.map(({ task, depth, within = [] }) => {
        const end =
          task.endedAt ?? (task.status === "running" || task.status === "retrying" ? now : task.begunAt);
        const left = task.begunAt === null ? 0 : ((task.begunAt - range.from) / length) * 100;
        const width =
          task.begunAt === null || end === null ? 0 : (Math.max(0, end - task.begunAt) / length) * 100;
        const took =
          task.begunAt === null || end === null ? null : formatDuration(Math.max(0, end - task.begunAt));
        return [
          <button
            type="button"
            key={task.id}
            class={`line task ${task.status} ${isDim(task) ? "faint" : ""} ${path.has(task) ? "path" : ""}`}
            aria-pressed={task === chosen}
            data-task={task.name}
            onClick={() => onChoose(task)}
          >
            <span class="label" style={{ paddingLeft: `${0.6 + depth}rem` }}>
              <span class={`dot ${task.status}`} />
              <span class="name">{[...within, task.name].join(" › ")}</span>
              <span class="unseen">{TASK_STATUS_TEXTS[task.status]}</span>
              {path.has(task) && <span class="unseen">on the critical path</span>}
              {task === slowest && <span class="badge">slowest</span>}
              {task.tries > 1 && <span class="tries">{retriesText(task)}</span>}
              <span class="took">{took ?? TASK_STATUS_TEXTS[task.status]}</span>
            </span>
            <span class="track" style={{ width: `${zoom * 100}%` }}>
              {task.begunAt !== null && (
                <span
                  class="span"
                  style={{ left: `${Math.min(left, 99.5)}%`, width: `max(3px, ${width}%)` }}
                />
              )}
            </span>
          </button>,
          ...(calls.get(task.id) ?? []).map((call) => (
            <CallRow
              key={`${task.id} ${call.kind} ${call.id}`}
              call={call}
              depth={depth + 1}
              isDim={isCallDim(call)}
              onChoose={() => onChoose(task)}
            />
          )),
        ];
      })}
    </section>
  );
}

interface CallRowProps {
  readonly call: TaskCall;
  readonly depth: number;
  readonly isDim: boolean;
  readonly onChoose: () => void;
}

/** A row for a model or tool call. It has no bar, because the stored events do not contain its start and end. */
function CallRow({ call, depth, isDim, onChoose }: CallRowProps) {
  const name = call.kind === "model" ? (call.models[0] ?? UNNAMED_MODEL) : call.name;
  return (
    <button
      type="button"
      class={`line call-line ${isDim ? "faint" : ""}`}
      data-call={name}
      onClick={onChoose}
      title={call.text === "" ? undefined : toOneLine(call.text)}
    >
      <span class="label" style={{ paddingLeft: `${0.6 + depth}rem` }}>
        <span class="kind">{call.kind}</span>
        <span class="name">{name}</span>
      </span>
      <span class="said">{call.kind === "model" ? <Tokens {...call} /> : <ToolResult {...call} />}</span>
    </button>
  );
}

function Tokens({ tokensIn, tokensOut, cost, text }: Extract<TaskCall, { kind: "model" }>) {
  return (
    <>
      {tokensIn !== null && <span>{formatCount(tokensIn)} in</span>}
      {tokensOut !== null && <span>{formatCount(tokensOut)} out</span>}
      {cost !== null && <span>{formatCost(cost)}</span>}
      <span class="dim text">{toOneLine(text)}</span>
    </>
  );
}

function ToolResult({ args, text, status }: Extract<TaskCall, { kind: "tool" }>) {
  return (
    <>
      {args !== null && args !== "{}" && <code>{toOneLine(args)}</code>}
      <span class={status === "failed" ? "bad text" : "dim text"}>
        {status === "unanswered" ? "no tool result in this run" : `→ ${toOneLine(text)}`}
      </span>
    </>
  );
}
