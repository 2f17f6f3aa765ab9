import { useRef, useState } from "preact/hooks";
import { isDone, type Run } from "../api/records.ts";
import { useNow } from "../app/clock.ts";
import { replaceQuery, currentLocation } from "../app/page-location.ts";
import type { RunSubscription } from "../live/run-subscription.ts";
import type { Task } from "../live/trace.ts";
import { EmptyState } from "../components/empty-state.tsx";
import { formatDuration } from "../components/status-badge.tsx";
import { useKeys } from "../components/use-keys.ts";
import { TaskDetail } from "./task-detail.tsx";
import { RunSummary } from "./run-summary.tsx";
import {
  type TimelineGroup,
  timelineGroups,
  taskContains,
  stepNumbering,
  type TimeRange,
  timeRangeOf,
  slowestTaskOf,
  ticksOf,
  questionWaitMs,
} from "./timeline-rows.ts";

const MAX_ZOOM = 64;

/** The supersteps of a run and their tasks over time, with details of the selection. */
export function TimelineTab({ watch, run }: { readonly watch: RunSubscription; readonly run: Run }) {
  const [zoom, setZoom] = useState(1);
  const [text, setText] = useState("");
  const search = useRef<HTMLInputElement>(null);
  const clock = useNow(!isDone(run));
  // The events of an ended run arrive after its record, which no longer changes.
  void watch.changes.count;
  const { trace } = watch;
  const { query } = currentLocation.value;
  const groups = timelineGroups(trace);
  const numberOf = stepNumbering(run, groups);
  const all = groups.flatMap(({ lines }) => lines.map(({ task }) => task));
  const slowest = slowestTaskOf(groups);
  const found = text === "" ? all : all.filter((task) => taskContains(trace, task, text));
  const step = query.get("step");
  const chosen = all.find(({ id }) => id === query.get("task")) ?? null;
  const range = timeRangeOf(run, trace, isDone(run) ? null : clock);
  const wait = questionWaitMs(run, trace);
  const choose = (task: Task | null) => replaceQuery({ task: task?.id ?? null, step: task?.step ?? null });
  useKeys((key) => {
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
            placeholder="search in the run ( / )"
            value={text}
            onInput={({ currentTarget }) => setText(currentTarget.value)}
          />
          {text !== "" && (
            <span class="dim" role="status">
              {found.length} of {all.length}
            </span>
          )}
          <span class="space" />
          <span class="dim keys">↑ ↓ step · + − zoom · Esc close</span>
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
        <RunSummary
          failed={all.findLast(({ status }) => status === "failed") ?? null}
          error={trace.error}
          slowest={slowest}
          onChoose={choose}
        />
        {groups.length === 0 ? (
          <EmptyState
            title={
              run.status === "pending"
                ? "The run is queued."
                : isDone(run)
                  ? "The run made no superstep."
                  : "Starting…"
            }
          />
        ) : (
          <div class="chart" tabIndex={-1}>
            {wait !== null && (
              <p class="wait-mark" title="From the state with the question to its answer">
                waited {formatDuration(wait)} for the answer
              </p>
            )}
            <Axis range={range} zoom={zoom} />
            {groups.map((group) => (
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
                isDim={(task) => text !== "" && !found.includes(task)}
                onChoose={choose}
                onStep={() => replaceQuery({ step: group.step, task: null })}
              />
            ))}
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
        {ticksOf(range, 5 * zoom)
          // A label at the very end would not fit.
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
  readonly isDim: (task: Task) => boolean;
  readonly onChoose: (task: Task) => void;
  readonly onStep: () => void;
}

function Superstep(props: SuperstepProps) {
  const { group, number, range, zoom, now, chosen, isChosen, slowest, isDim, onChoose, onStep } = props;
  const length = range.to - range.from;
  return (
    <section class="superstep" aria-label={`Superstep ${number}`}>
      <button type="button" class="quiet step" aria-pressed={isChosen} onClick={onStep}>
        step {number}
      </button>
      {group.lines.map(({ task, depth }) => {
        const end =
          task.endedAt ?? (task.status === "running" || task.status === "retrying" ? now : task.begunAt);
        const left = task.begunAt === null ? 0 : ((task.begunAt - range.from) / length) * 100;
        const width =
          task.begunAt === null || end === null ? 0 : (Math.max(0, end - task.begunAt) / length) * 100;
        const took =
          task.begunAt === null || end === null ? null : formatDuration(Math.max(0, end - task.begunAt));
        return (
          <button
            type="button"
            key={task.id}
            class={`line task ${task.status} ${isDim(task) ? "faint" : ""}`}
            aria-pressed={task === chosen}
            data-task={task.name}
            onClick={() => onChoose(task)}
          >
            <span class="label" style={{ paddingLeft: `${0.6 + depth}rem` }}>
              <span class={`dot ${task.status}`} />
              <span class="name">{task.name}</span>
              <span class="unseen">{task.status}</span>
              {task === slowest && <span class="badge">slowest</span>}
              {task.tries > 1 && <span class="tries">×{task.tries}</span>}
              <span class="took">{took ?? task.status}</span>
            </span>
            <span class="track" style={{ width: `${zoom * 100}%` }}>
              {task.begunAt !== null && (
                <span
                  class="span"
                  style={{ left: `${Math.min(left, 99.5)}%`, width: `max(3px, ${width}%)` }}
                />
              )}
            </span>
          </button>
        );
      })}
    </section>
  );
}
