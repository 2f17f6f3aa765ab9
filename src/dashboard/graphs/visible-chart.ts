import {
  type ChartModel,
  buildChart,
  type ChartDefinition,
  joinNodePath,
  activeStateIndexes,
  nodeIndexesByPath,
  type ActiveStateValue,
  type StoredActors,
} from "../inspector/chart-model.ts";
import type { TakenPath } from "../inspector/taken-transitions.ts";
import type { Task, TaskStatus, Trace } from "../live/trace.ts";

/**
 * Builds a chart in which only the subgraphs in `open` are expanded. `open` contains paths of nodes, whose names are
 * joined by slashes.
 */
export function buildVisibleChart(definition: ChartDefinition, open: ReadonlySet<string>): ChartModel {
  return buildChart(closed(definition, open, ""));
}

function closed(definition: ChartDefinition, open: ReadonlySet<string>, path: string): ChartDefinition {
  if (definition.states === undefined) return definition;
  const states = Object.fromEntries(
    Object.entries(definition.states).map(([name, inner]) => {
      const here = inner.id === undefined ? path : joinNodePath(path, name);
      if (inner.id === undefined || inner.states === undefined || open.has(here))
        return [name, closed(inner, open, here)];
      const { states: _, type: __, initial: ___, ...leaf } = inner;
      return [name, leaf];
    }),
  );
  return { ...definition, states };
}

/** Returns the paths of the nodes that contain a subgraph. */
export function subgraphPathsOf(definition: ChartDefinition, path = ""): readonly string[] {
  return Object.entries(definition.states ?? {}).flatMap(([name, inner]) => {
    const here = inner.id === undefined ? path : joinNodePath(path, name);
    const own = inner.id !== undefined && inner.states !== undefined ? [here] : [];
    return [...own, ...subgraphPathsOf(inner, here)];
  });
}

export const nodePathOfTask = ({ ns, name }: Pick<Task, "ns" | "name">): string =>
  [...ns.split("|").map((part) => part.split(":")[0] ?? ""), name].filter((part) => part !== "").join("/");

/**
 * Returns the mark of states, by the state's index: `running`, or the status of the node's latest task. States without
 * a mark are absent.
 */
export function nodeMarksOf(
  chart: ChartModel,
  value: ActiveStateValue | undefined,
  tasks: Iterable<Task>,
): ReadonlyMap<number, TaskStatus> {
  const marks = new Map<number, TaskStatus>();
  const indexes = nodeIndexesByPath(chart);
  for (const task of tasks) {
    const path = nodePathOfTask(task);
    const index = indexes.get(path);
    const before = index === undefined ? undefined : marks.get(index);
    if (index !== undefined && task.status !== "waiting" && before !== "running")
      marks.set(index, task.status);
  }
  for (const index of activeStateIndexes(chart, value)) {
    const mark = marks.get(index);
    if (mark !== "interrupted" && mark !== "failed" && chart.states[index]?.isNode === true)
      marks.set(index, "running");
  }
  return marks;
}

/** Marks all active states of a chart, and of the actors of a machine, with the same status. */
export const activeStateMarksOf = (
  chart: ChartModel,
  value: ActiveStateValue | undefined,
  status: TaskStatus,
  actors: StoredActors = {},
): ReadonlyMap<number, TaskStatus> =>
  new Map([...activeStateIndexes(chart, value, actors)].map((index) => [index, status]));

/** Returns the paths that a run has taken: one through its graph, and one through each subgraph that it executed. */
export function takenPathsOf(trace: Trace): readonly TakenPath[] {
  const all = new Map<string, Trace["steps"]>();
  for (const step of trace.steps) all.set(step.ns, [...(all.get(step.ns) ?? []), step]);
  return [...all].map(([ns, steps]) => {
    const path = nodePathOfTask({ ns, name: "" });
    const [first] = steps;
    // The nodes that ran before the first checkpoint are found by their tasks: if the run continued an earlier run, no
    // checkpoint of this trace has planned these nodes.
    const before = [...trace.tasks.values()].filter((task) => task.ns === ns && task.step === first?.step);
    const way = steps.map(({ next }) => (next.length === 0 ? ["__end__"] : next));
    return [before.map(({ name }) => name), ...way].map((names) =>
      names.map((name) => joinNodePath(path, name)),
    );
  });
}
