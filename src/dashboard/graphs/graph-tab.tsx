import { useEffect, useMemo } from "preact/hooks";
import { RunSubscription } from "../live/run-subscription.ts";
import { navigate, threadHref } from "../app/page-location.ts";
import { stateLabel } from "../inspector/chart-model.ts";
import { type FeedActor, isLiveActor, type FeedModel } from "../inspector/feed-model.ts";
import type { ThreadSubscription } from "../live/thread-subscription.ts";
import { TASK_STATUS_TEXTS } from "../live/status-texts.ts";
import type { Task, TaskStatus, Trace } from "../live/trace.ts";
import type { JsonRecord } from "../api/records.ts";
import { EmptyState, ErrorAlert, Loading } from "../components/empty-state.tsx";
import { useResource } from "../components/use-resource.ts";
import { getGraphStatechart, HIDDEN_GRAPH_TEXT } from "./graph-statechart.ts";
import { nodePathOfTask, takenPathsOf } from "./visible-chart.ts";
import { StatechartView, usePreloadedLayoutWorker } from "./statechart-view.tsx";

/** The graph of a thread with its running nodes, and the statecharts of the thread's actors. */
export function GraphTab({ watch }: { readonly watch: ThreadSubscription }) {
  void watch.changes.count;
  const latest = watch.runs.value.find(({ status }) => status !== "pending");
  const known = latest === undefined ? undefined : watch.traces.get(latest.run_id);
  // A run that ended before this page was opened has no trace here yet, so its events are read from the beginning.
  const recalled = useRecalled(watch.id, known === undefined ? latest?.run_id : undefined);
  const trace = known ?? recalled;
  const graph = watch.record.value?.metadata["graph_id"];
  if (typeof graph !== "string")
    return (
      <EmptyState title="No runs yet">
        <a href={threadHref(watch.id)}>Start a run</a>
      </EmptyState>
    );
  return (
    <GraphAndActorCharts
      model={watch.model}
      traces={trace === undefined ? [] : [trace]}
      graph={graph}
      values={watch.state.value?.values ?? null}
      machineStatus={THREAD_MARKS[watch.record.value?.status ?? "idle"]}
      onTask={({ id, step }) => {
        if (trace !== undefined) navigate(["threads", watch.id, "runs", trace.run], { step, task: id });
      }}
    />
  );
}

/** How the active states of a machine are marked, by the status of its thread. */
const THREAD_MARKS = { idle: "done", busy: "running", interrupted: "interrupted", error: "failed" } as const;

function useRecalled(thread: string, run: string | undefined): Trace | undefined {
  const watch = useMemo(
    () => (run === undefined ? null : new RunSubscription(thread, run, false)),
    [thread, run],
  );
  useEffect(() => () => watch?.close(), [watch]);
  void watch?.changes.count;
  return watch?.trace;
}

interface GraphAndActorChartsProps {
  readonly model: FeedModel;
  readonly traces: readonly Trace[];
  readonly graph?: string | undefined;
  /** The values of the graph's state; null if they are not known. */
  readonly values: JsonRecord | null;
  /** How the active states are marked if the graph is made from an XState machine. */
  readonly machineStatus: TaskStatus;
  readonly onTask: (task: Task) => void;
}

/** The chart of a graph, and under it the statecharts of the actors that run it. */
export function GraphAndActorCharts({
  model,
  traces,
  graph,
  values,
  machineStatus,
  onTask,
}: GraphAndActorChartsProps) {
  usePreloadedLayoutWorker();
  const actor = model.latest("graph");
  const name = actor?.name ?? graph;
  const found = useResource(
    async () => (name === undefined || actor !== undefined ? null : getGraphStatechart(name)),
    [name, actor === undefined],
  );
  const definition = actor?.definition ?? found.value ?? null;
  const tasks = traces.flatMap((trace) => [...trace.tasks.values()]);
  if (definition === null)
    return found.error !== null ? (
      <ErrorAlert text={found.error} onRetry={found.reload} />
    ) : found.isReading ? (
      <Loading isPadded />
    ) : (
      <p class="note">{HIDDEN_GRAPH_TEXT}</p>
    );
  const value = actor !== undefined && isLiveActor(actor) ? actor.message.snapshot?.value : undefined;
  const actors = (["run", "thread"] as const)
    .map((kind) => model.latest(kind))
    .filter((one) => one !== undefined);
  return (
    <div class="pad graphs">
      <StatechartView
        definition={definition}
        value={value}
        tasks={tasks}
        values={values}
        machineStatus={machineStatus}
        label={`Graph ${name ?? ""}`}
        ways={traces.flatMap(takenPathsOf)}
        onNode={(path) => {
          const task = tasks.findLast((one) => nodePathOfTask(one) === path);
          if (task !== undefined) onTask(task);
        }}
      />
      <ul class="legend" aria-label="Legend">
        {(["running", "done", "interrupted", "failed"] as const).map((mark) => (
          <li key={mark}>
            <span class={`swatch ${mark}`} aria-hidden="true" /> {TASK_STATUS_TEXTS[mark]}
          </li>
        ))}
      </ul>
      {actors.map((one) => (
        <ActorChart key={one.kind} actor={one} />
      ))}
    </div>
  );
}

function ActorChart({ actor }: { readonly actor: FeedActor }) {
  const words = stateLabel(actor.message.snapshot?.value);
  const name = actor.kind === "run" ? "Run actor" : "Thread actor";
  return (
    <details class="more">
      <summary>
        {name}: <strong>{words}</strong>
      </summary>
      <StatechartView
        definition={actor.definition}
        isChart
        value={actor.message.snapshot?.value}
        tasks={[]}
        label={`${name}: ${words}`}
      />
    </details>
  );
}
