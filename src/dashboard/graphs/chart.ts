import { type Chart, chartOf, type Definition, litBy, type State, type Value } from "../inspector/chart.ts";
import type { Task, TaskStatus } from "../live/trace.ts";

/** A chart of which only the subgraphs in `open` are drawn from within; paths of nodes with slashes. */
export function drawn(definition: Definition, open: ReadonlySet<string>): Chart {
  return chartOf(closed(definition, open, ""));
}

function closed(definition: Definition, open: ReadonlySet<string>, path: string): Definition {
  if (definition.states === undefined) return definition;
  const states = Object.fromEntries(
    Object.entries(definition.states).map(([name, inner]) => {
      const here = inner.id === undefined ? path : join(path, name);
      if (inner.id === undefined || inner.states === undefined || open.has(here))
        return [name, closed(inner, open, here)];
      const { states: _, type: __, initial: ___, ...leaf } = inner;
      return [name, leaf];
    }),
  );
  return { ...definition, states };
}

const join = (path: string, name: string): string => (path === "" ? name : `${path}/${name}`);

/** The nodes that hold others, by their paths. */
export function subgraphsOf(definition: Definition, path = ""): readonly string[] {
  return Object.entries(definition.states ?? {}).flatMap(([name, inner]) => {
    const here = inner.id === undefined ? path : join(path, name);
    const own = inner.id !== undefined && inner.states !== undefined ? [here] : [];
    return [...own, ...subgraphsOf(inner, here)];
  });
}

/** Each node's place in the chart, by its path. */
export function placesOf(chart: Chart): ReadonlyMap<string, number> {
  const places = new Map<string, number>();
  const walk = (states: readonly State[], path: string): void => {
    for (const state of states) {
      const here = state.isNode ? join(path, state.name) : path;
      if (state.isNode) places.set(here, state.index);
      walk(state.children, here);
    }
  };
  walk(chart.root, "");
  return places;
}

export const pathOf = ({ ns, name }: Task): string =>
  [...ns.split("|").map((part) => part.split(":")[0] ?? ""), name].filter((part) => part !== "").join("/");

/** How each state of the chart is to be marked: the nodes that run, and how the others ended last. */
export function marksOf(
  chart: Chart,
  value: Value | undefined,
  tasks: Iterable<Task>,
): ReadonlyMap<number, TaskStatus> {
  const marks = new Map<number, TaskStatus>();
  const places = placesOf(chart);
  for (const task of tasks) {
    const path = pathOf(task);
    const place = places.get(path);
    const before = place === undefined ? undefined : marks.get(place);
    if (place !== undefined && task.status !== "waiting" && before !== "running")
      marks.set(place, task.status);
  }
  for (const place of litBy(chart, value)) {
    const mark = marks.get(place);
    if (mark !== "interrupted" && mark !== "failed" && chart.states[place]?.isNode === true)
      marks.set(place, "running");
  }
  return marks;
}
