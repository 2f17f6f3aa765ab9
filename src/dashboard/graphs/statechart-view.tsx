import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import {
  buildChart,
  type ChartDefinition,
  nodeIndexesByPath,
  type ActiveStateValue,
  type StoredActors,
} from "../inspector/chart-model.ts";
import { ChartRenderer, highlightTakenArrows } from "../inspector/chart-drawing.ts";
import { addedArrowsKey, markTakenTransitions, type TakenPath } from "../inspector/taken-transitions.ts";
import { ChartZoom } from "../inspector/chart-zoom.ts";
import { isJsonRecord, type JsonRecord } from "../api/records.ts";
import type { Task, TaskStatus } from "../live/trace.ts";
import { ErrorAlert } from "../components/empty-state.tsx";
import { errorMessage } from "../app/notices.ts";
import { activeStateMarksOf, buildVisibleChart, nodeMarksOf, subgraphPathsOf } from "./visible-chart.ts";

/** One renderer for all charts of the page, so that each layout is computed only once. */
const drawing = new ChartRenderer("dashboard/elk-worker.js");

/**
 * Starts to load the layout worker. A page calls this while it still reads the chart, so that both load at the same
 * time.
 */
export const usePreloadedLayoutWorker = (): void => useEffect(() => void drawing.start(), []);

const NOWHERE: readonly TakenPath[] = [];

/** Returns the actors in the stored snapshot of a machine. */
function storedActorsOf(values: JsonRecord | null): StoredActors {
  const { rest } = isJsonRecord(values?.["__snapshot__"]) ? values["__snapshot__"] : {};
  const { children } = isJsonRecord(rest) ? rest : {};
  return isJsonRecord(children) ? (children as StoredActors) : {};
}

interface FigureProps {
  /** The XState definition of the statechart, as JSON. */
  readonly definition: string;
  readonly value: ActiveStateValue | undefined;
  readonly tasks: readonly Task[];
  readonly label: string;
  /** The paths that runs have taken through the graph: the arrows on them are highlighted. */
  readonly ways?: readonly TakenPath[];
  /**
   * True for the statechart of an actor: it is fully expanded, and all active states are highlighted. False for a
   * graph.
   */
  readonly isChart?: boolean;
  /**
   * The values of the graph's state. If the graph is made from an XState machine and `value` is undefined, they say
   * which states are active.
   */
  readonly values?: JsonRecord | null;
  /** The mark of the active states if the graph is made from an XState machine. */
  readonly machineStatus?: TaskStatus;
  readonly onNode?: (path: string) => void;
}

/** Draws a statechart or graph, and marks its states as running, done, failed and so on. */
export function StatechartView({
  definition,
  value,
  tasks,
  label,
  ways = NOWHERE,
  isChart = false,
  values = null,
  machineStatus = "running",
  onNode,
}: FigureProps) {
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const [wrong, setWrong] = useState<string | null>(null);
  /** How often the user has clicked *Try again* after a failure. A change draws the chart again. */
  const [retries, setRetries] = useState(0);
  const box = useRef<HTMLDivElement>(null);
  const svg = useRef<SVGSVGElement | null>(null);
  const bar = useRef<HTMLDivElement>(null);
  const zoom = useRef<ChartZoom | null>(null);
  useEffect(() => {
    if (box.current === null) return undefined;
    const made = new ChartZoom(box.current);
    zoom.current = made;
    bar.current?.replaceChildren(made.bar);
    return () => made.close();
  }, []);
  const parsed = useMemo(() => JSON.parse(definition) as ChartDefinition, [definition]);
  const { valueKey } = parsed;
  // In a machine, all states are drawn: nested states are not subgraphs that could be collapsed.
  const isWhole = isChart || valueKey !== undefined;
  const subgraphs = useMemo(() => (isWhole ? [] : subgraphPathsOf(parsed)), [parsed]);
  const declared = useMemo(
    () => (isWhole ? buildChart(parsed) : buildVisibleChart(parsed, open)),
    [parsed, open],
  );
  // In a machine, no arrows are highlighted: the steps of its run are not its transitions.
  const gone = markTakenTransitions(declared, valueKey === undefined ? ways : NOWHERE);
  const { chart } = gone;
  const further = addedArrowsKey(chart, declared);
  const marks = isChart
    ? activeStateMarksOf(chart, value, "running")
    : valueKey === undefined
      ? nodeMarksOf(chart, value, tasks)
      : activeStateMarksOf(
          chart,
          value ?? (values?.[valueKey] as ActiveStateValue | undefined),
          machineStatus,
          storedActorsOf(values),
        );
  const light = () => {
    for (const group of svg.current?.querySelectorAll<SVGElement>("[data-state]") ?? []) {
      const mark = marks.get(Number(group.dataset["state"]));
      for (const name of ["running", "done", "failed", "interrupted", "retrying", "stopped"]) {
        group.classList.toggle(name, mark === name);
      }
      group.classList.toggle("lit", mark === "running" || mark === "retrying" || mark === "interrupted");
    }
    svg.current?.setAttribute("aria-label", label);
    if (svg.current !== null) highlightTakenArrows(svg.current, gone);
    zoom.current?.show();
  };
  const lit = useRef(light);
  lit.current = light;
  useEffect(() => {
    let isOld = false;
    setWrong(null);
    drawing.draw(chart, `${definition} ${[...open].join(" ")} ${further}`).then(
      (made) => {
        if (isOld) return;
        svg.current = made;
        const paths = new Map([...nodeIndexesByPath(chart)].map(([path, place]) => [String(place), path]));
        for (const group of made.querySelectorAll<SVGElement>("[data-state]")) {
          const path = paths.get(group.dataset["state"] ?? "");
          if (path !== undefined) group.dataset["node"] = path;
        }
        box.current?.replaceChildren(made);
        lit.current();
      },
      (cause: unknown) => {
        if (!isOld) setWrong(errorMessage(cause));
      },
    );
    return () => {
      isOld = true;
    };
  }, [declared, further, retries]);
  useEffect(light);
  const toggle = (path: string) => {
    const next = new Set(open);
    if (!next.delete(path)) next.add(path);
    setOpen(next);
  };
  return (
    <figure>
      {subgraphs.length > 0 && (
        <figcaption class="bar">
          <span class="dim">Subgraphs:</span>
          {subgraphs.map((path) => (
            <button
              key={path}
              type="button"
              class="quiet"
              aria-pressed={open.has(path)}
              onClick={() => toggle(path)}
            >
              {path}
            </button>
          ))}
        </figcaption>
      )}
      <div class="zooms" ref={bar} />
      {wrong !== null && (
        <ErrorAlert text={`The chart could not be drawn: ${wrong}`} onRetry={() => setRetries(retries + 1)} />
      )}
      <div
        class="scroll"
        tabIndex={0}
        aria-label={label}
        role="group"
        ref={box}
        onClick={(event) => {
          const node = (event.target as Element).closest<SVGElement>("[data-node]")?.dataset["node"];
          if (node !== undefined) onNode?.(node);
        }}
      >
        <p class="dim drawing" hidden={wrong !== null}>
          Drawing…
        </p>
      </div>
    </figure>
  );
}
