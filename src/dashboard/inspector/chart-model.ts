/** An XState definition of a machine or state, with only the fields that are drawn. */
export interface ChartDefinition {
  readonly id?: string;
  readonly type?: string;
  readonly initial?: string;
  readonly states?: { readonly [name: string]: ChartDefinition };
  readonly on?: { readonly [event: string]: Transitions };
  readonly after?: { readonly [delay: string]: Transitions };
  readonly always?: Transitions;
  readonly onDone?: Transitions;
  readonly invoke?: Invoke | readonly Invoke[];
  /** The key of the graph's state that holds the active states: the graph is made from an XState machine. */
  readonly valueKey?: string;
}
interface Invoke {
  readonly id?: string;
  readonly onDone?: Transitions;
  readonly onError?: Transitions;
}
type Transitions = Transition | string | readonly (Transition | string)[];
interface Transition {
  readonly target?: string | readonly string[];
  readonly guard?: string | { readonly type: string; readonly params?: object };
}

/** A state of the chart, with the states inside it. */
export interface DrawnState {
  /** The index of the state in {@link ChartModel.states}. */
  readonly index: number;
  readonly name: string;
  readonly path: readonly string[];
  readonly kind: "leaf" | "compound" | "parallel" | "final";
  readonly isInitial: boolean;
  /** Whether the state is a node of a graph, which has an id, not only a group of parallel states. */
  readonly isNode: boolean;
  readonly children: readonly DrawnState[];
}

/**
 * All transitions from one state to another, drawn as one arrow with several labels. `from` and `to` are indexes of
 * states.
 */
export interface Arrow {
  readonly from: number;
  readonly to: number;
  readonly labels: readonly string[];
  /** Whether the graph decides about all of these transitions at run time: their guard is `chosen`. */
  readonly maybe: boolean;
}

export interface ChartModel {
  readonly root: readonly DrawnState[];
  readonly states: readonly DrawnState[];
  readonly arrows: readonly Arrow[];
}

interface Found {
  readonly state: DrawnState;
  readonly definition: ChartDefinition;
  readonly above: Found | null;
}

/** Converts an XState definition to nested states and the arrows between them. */
export function buildChart(definition: ChartDefinition): ChartModel {
  const all: Found[] = [];
  const ids = new Map<string, Found | null>();
  if (definition.id !== undefined) ids.set(definition.id, null);
  const read = (holder: ChartDefinition, above: Found | null): readonly DrawnState[] =>
    Object.entries(holder.states ?? {}).map(([name, inner]) => {
      const children: DrawnState[] = [];
      const state: DrawnState = {
        index: all.length,
        name,
        path: [...(above?.state.path ?? []), name],
        kind:
          inner.type === "final"
            ? "final"
            : inner.states === undefined
              ? "leaf"
              : inner.type === "parallel"
                ? "parallel"
                : "compound",
        isInitial: holder.initial === name,
        isNode: inner.id !== undefined,
        children,
      };
      const found: Found = { state, definition: inner, above };
      all.push(found);
      if (inner.id !== undefined) ids.set(inner.id, found);
      children.push(...read(inner, found));
      return state;
    });
  const root = read(definition, null);
  const at = (start: Found | null, path: readonly string[]): Found | undefined => {
    let found: Found | null | undefined = start;
    for (const name of path) {
      const holder: Found | null = found ?? null;
      found = all.find((one) => one.above === holder && one.state.name === name);
      if (found === undefined) return undefined;
    }
    return found ?? undefined;
  };
  const resolve = (target: string, source: Found | null): Found | undefined => {
    if (!target.startsWith("#")) {
      return target.startsWith(".")
        ? at(source, target.slice(1).split("."))
        : (at(source?.above ?? null, [target]) ?? at(source?.above ?? null, target.split(".")));
    }
    const id = target.slice(1);
    const whole = ids.get(id);
    if (whole !== undefined) return whole ?? undefined;
    const [head = "", ...path] = id.split(".");
    return ids.has(head) ? at(ids.get(head) ?? null, path) : undefined;
  };
  const arrows = new Map<string, { from: number; to: number; labels: string[]; maybe: boolean }>();
  const add = (source: Found, label: string, transitions: Transitions | undefined) => {
    for (const one of transitions === undefined ? [] : ([transitions].flat() as (Transition | string)[])) {
      const { target, guard } = typeof one === "string" ? { target: one } : (one as Transition);
      for (const name of target === undefined ? [] : [target].flat()) {
        const to = resolve(name, source);
        if (to === undefined) continue;
        const key = `${source.state.index} ${to.state.index}`;
        const arrow = arrows.get(key) ?? {
          from: source.state.index,
          to: to.state.index,
          labels: [],
          maybe: true,
        };
        arrows.set(key, arrow);
        arrow.maybe &&= guard === "chosen";
        const text = `${label}${guardLabel(guard)}`;
        if (!arrow.labels.includes(text)) arrow.labels.push(text);
      }
    }
  };
  for (const found of all) {
    const { on = {}, after = {}, always, onDone, invoke } = found.definition;
    for (const [event, transitions] of Object.entries(on)) add(found, event, transitions);
    for (const [delay, transitions] of Object.entries(after)) add(found, `after ${delay}`, transitions);
    add(found, "", always);
    add(found, "done", onDone);
    for (const one of invoke === undefined ? [] : ([invoke].flat() as readonly Invoke[])) {
      add(found, `${one.id ?? "child"} is done`, one.onDone);
      add(found, `${one.id ?? "child"} broke`, one.onError);
    }
  }
  return { root, states: all.map(({ state }) => state), arrows: [...arrows.values()] };
}

function guardLabel(guard: Transition["guard"]): string {
  if (guard === undefined || guard === "chosen") return "";
  if (typeof guard === "string") return ` [${guard}]`;
  const params = Object.values(guard.params ?? {}).join(", ");
  return ` [${guard.type}${params === "" ? "" : ` ${params}`}]`;
}

export type ActiveStateValue = string | { readonly [state: string]: ActiveStateValue };

/** Returns the indexes of the states that an XState state value names, including their ancestors. */
export function activeStates(chart: ChartModel, value: ActiveStateValue | undefined): ReadonlySet<number> {
  const lit = new Set<number>();
  const walk = (states: readonly DrawnState[], inside: ActiveStateValue): void => {
    for (const [name, inner] of typeof inside === "string"
      ? [[inside, {}] as const]
      : Object.entries(inside)) {
      const state = states.find((one) => one.name === name);
      if (state === undefined) continue;
      lit.add(state.index);
      walk(state.children, inner);
    }
  };
  if (value !== undefined) walk(chart.root, value);
  return lit;
}

/** Returns the path of the node `name` inside the node at `path`. An empty `path` is the graph itself. */
export const joinPath = (path: string, name: string): string => (path === "" ? name : `${path}/${name}`);

/** Returns the indexes of the chart's nodes, by the node's path. */
export function indexesByPath(chart: ChartModel): ReadonlyMap<string, number> {
  const indexes = new Map<string, number>();
  const walk = (states: readonly DrawnState[], path: string): void => {
    for (const state of states) {
      const here = state.isNode ? joinPath(path, state.name) : path;
      if (state.isNode) indexes.set(here, state.index);
      walk(state.children, here);
    }
  };
  walk(chart.root, "");
  return indexes;
}

/** Returns the active nodes of a graph as text: their paths, joined by ` + `. */
export function activeNodesText(chart: ChartModel, value: ActiveStateValue | undefined): string {
  const lit = activeStates(chart, value);
  const words = (states: readonly DrawnState[], above: readonly string[]): readonly string[] =>
    states.flatMap((state) => {
      if (!lit.has(state.index)) return [];
      const here = state.isNode ? [...above, state.name] : above;
      const inside = words(state.children, here);
      return inside.length > 0 ? inside : [here.join("/")];
    });
  return words(chart.root, []).join(" + ") || stateLabel(value);
}

/** Returns an XState state value as text. */
export function stateLabel(value: ActiveStateValue | undefined): string {
  if (value === undefined) return "";
  if (typeof value === "string") return value;
  return Object.entries(value)
    .map(([name, inner]) => {
      const words = stateLabel(inner);
      return words === "" ? name : `${name}.${words}`;
    })
    .join(" + ");
}
