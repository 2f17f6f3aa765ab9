import { formatDuration } from "../components/duration.ts";

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
  /**
   * For a graph made from an XState machine: the key of the graph's state whose value says which states are active.
   * Absent for other graphs.
   */
  readonly valueKey?: string;
}
interface Invoke {
  readonly id?: string;
  readonly src?: string;
  /** The statechart of the invoked actor; absent if the actor is not a machine. */
  readonly chart?: ChartDefinition;
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
  /**
   * The id of the actor, if this is not a state but a machine that the state invokes; empty if the actor has no id.
   * Null for a state.
   */
  readonly actor: string | null;
  /**
   * Whether the state is a node of a graph, or a state of a machine: these have an id. States without an id only group
   * parallel nodes.
   */
  readonly isNode: boolean;
  readonly children: readonly DrawnState[];
}

/**
 * All transitions from one state to another, drawn as one arrow with several labels. `from` and `to` are indexes of
 * states.
 */
export interface ChartArrow {
  readonly from: number;
  readonly to: number;
  readonly labels: readonly string[];
  /** The labels; where a label describes an event in words, the event's type follows in brackets. */
  readonly details: readonly string[];
  /** Whether the graph decides about all of these transitions at run time: their guard is `chosen`. */
  readonly maybe: boolean;
}

export interface ChartModel {
  readonly root: readonly DrawnState[];
  /**
   * The box around a machine, from which the transitions for all of its states begin; null if the machine has no such
   * transitions.
   */
  readonly frame: DrawnState | null;
  readonly states: readonly DrawnState[];
  readonly arrows: readonly ChartArrow[];
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
  const isMachine = definition.valueKey !== undefined;
  const actorNames = new Map<string, string>();
  const add = (name: string, inner: ChartDefinition, above: Found | null, part: Partial<DrawnState>) => {
    const children: DrawnState[] = [];
    const state: DrawnState = {
      index: all.length,
      name,
      path: [...(above?.state.path ?? []), name],
      kind: kindOf(inner),
      isInitial: false,
      actor: null,
      isNode: inner.id !== undefined,
      children,
      ...part,
    };
    const found: Found = { state, definition: inner, above };
    all.push(found);
    if (inner.id !== undefined) ids.set(inner.id, found);
    children.push(...read(inner, found));
    return state;
  };
  const read = (holder: ChartDefinition, above: Found | null): readonly DrawnState[] => {
    const states = Object.entries(holder.states ?? {}).map(([name, inner]) =>
      add(name, inner, above, { isInitial: holder.initial === name }),
    );
    const actors = invocationsOf(holder).flatMap(({ id, src, chart }) => {
      if (id !== undefined && src !== undefined) actorNames.set(id, src);
      return chart === undefined ? [] : [add(src ?? "machine", chart, above, { actor: id ?? "" })];
    });
    return [...states, ...actors];
  };
  const root = read(definition, null);
  const hasFrame = isMachine && Object.values(definition.on ?? {}).some((list) => [list].flat().length > 0);
  let frame: Found | null = null;
  if (hasFrame) {
    const { id = "machine", states: _, invoke: __, ...own } = definition;
    const state: DrawnState = {
      index: all.length,
      name: id,
      path: [],
      kind: "compound",
      isInitial: false,
      actor: null,
      isNode: false,
      children: root,
    };
    frame = { state, definition: own, above: null };
    all.push(frame);
  }
  const at = (start: Found | null, path: readonly string[]): Found | undefined => {
    let found: Found | null | undefined = start;
    for (const name of path) {
      const holder: Found | null = found ?? null;
      found = all.find((one) => one.above === holder && one.state.name === name && one.state.actor === null);
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
  const arrows = new Map<
    string,
    { from: number; to: number; labels: string[]; details: string[]; maybe: boolean }
  >();
  const draw = (source: Found, label: string, transitions: Transitions | undefined, event = label) => {
    for (const one of transitions === undefined ? [] : ([transitions].flat() as (Transition | string)[])) {
      const { target, guard } = typeof one === "string" ? { target: one } : (one as Transition);
      // In a machine, a transition without a target is drawn as an arrow from the state to itself.
      const inner = target === undefined && isMachine ? [source] : [];
      const targets = target === undefined ? inner : [target].flat().map((name) => resolve(name, source));
      for (const to of targets) {
        if (to === undefined) continue;
        const key = `${source.state.index} ${to.state.index}`;
        const arrow = arrows.get(key) ?? {
          from: source.state.index,
          to: to.state.index,
          labels: [],
          details: [],
          maybe: true,
        };
        arrows.set(key, arrow);
        arrow.maybe &&= guard === "chosen";
        const text = `${label}${guardLabel(guard)}`;
        if (arrow.labels.includes(text)) continue;
        arrow.labels.push(text);
        arrow.details.push(event === label ? text : `${text} (${event})`);
      }
    }
  };
  for (const found of all) {
    const { on = {}, after = {}, always, onDone } = found.definition;
    for (const [event, transitions] of Object.entries(on))
      draw(found, isMachine ? eventText(event, actorNames) : event, transitions, event);
    for (const [delay, transitions] of Object.entries(after)) draw(found, `after ${delay}`, transitions);
    draw(found, "", always);
    draw(found, "done", onDone);
    for (const one of invocationsOf(found.definition)) {
      draw(found, `${one.id ?? "child"} is done`, one.onDone);
      draw(found, `${one.id ?? "child"} broke`, one.onError);
    }
  }
  return {
    root,
    frame: frame?.state ?? null,
    states: all.map(({ state }) => state),
    arrows: [...arrows.values()],
  };
}

const invocationsOf = ({ invoke }: ChartDefinition): readonly Invoke[] =>
  invoke === undefined ? [] : ([invoke].flat() as readonly Invoke[]);

function kindOf(definition: ChartDefinition): DrawnState["kind"] {
  if (definition.type === "final") return "final";
  const hasActors = invocationsOf(definition).some(({ chart }) => chart !== undefined);
  if (definition.states === undefined && !hasActors) return "leaf";
  return definition.type === "parallel" ? "parallel" : "compound";
}

/**
 * Describes an event that XState itself has named, such as `xstate.done.actor.pay`, in plain words; returns any other
 * event unchanged. `actors`: the names of actors by id.
 */
function eventText(event: string, actors: ReadonlyMap<string, string>): string {
  const [, what, id = ""] = /^xstate\.(done\.actor|error\.actor|snapshot)\.(.+)$/.exec(event) ?? [];
  if (what !== undefined) {
    const src = actors.get(id) ?? id;
    const name = src.startsWith("xstate.invoke.") ? "actor" : src;
    return `${name} ${what === "done.actor" ? "is done" : what === "snapshot" ? "changes" : "failed"}`;
  }
  if (event.startsWith("xstate.done.state.")) return "done";
  const [, delay] = /^xstate\.after\.([^.]+)\./.exec(event) ?? [];
  if (delay === undefined) return event;
  return `after ${/^\d+$/.test(delay) ? formatDuration(Number(delay)) : delay}`;
}

function guardLabel(guard: Transition["guard"]): string {
  if (guard === undefined || guard === "chosen") return "";
  if (typeof guard === "string") return ` [${guard}]`;
  const params = Object.values(guard.params ?? {}).join(", ");
  return ` [${guard.type}${params === "" ? "" : ` ${params}`}]`;
}

export type ActiveStateValue = string | { readonly [state: string]: ActiveStateValue };

/** The actors of a machine, by id, as its stored snapshot has them. */
export interface StoredActors {
  readonly [id: string]: {
    readonly snapshot?: {
      readonly status?: string;
      readonly value?: ActiveStateValue;
      readonly children?: StoredActors;
    };
  };
}

/**
 * Returns the indexes of the states that an XState state value names, including their ancestors. `actors`: the stored
 * actors of a machine; their active states are included.
 */
export function activeStateIndexes(
  chart: ChartModel,
  value: ActiveStateValue | undefined,
  actors: StoredActors = {},
): ReadonlySet<number> {
  const lit = new Set<number>();
  const walkActors = (states: readonly DrawnState[], stored: StoredActors): void => {
    for (const { index, actor, children } of states) {
      const snapshot = actor !== null && Object.hasOwn(stored, actor) ? stored[actor]?.snapshot : undefined;
      if (snapshot?.status !== "active" || snapshot.value === undefined) continue;
      lit.add(index);
      walk(children, snapshot.value, snapshot.children ?? {});
    }
  };
  const walk = (states: readonly DrawnState[], inside: ActiveStateValue, stored: StoredActors): void => {
    walkActors(states, stored);
    for (const [name, inner] of typeof inside === "string"
      ? [[inside, {}] as const]
      : Object.entries(inside)) {
      const state = states.find((one) => one.name === name && one.actor === null);
      if (state === undefined) continue;
      lit.add(state.index);
      walk(state.children, inner, stored);
    }
  };
  if (value !== undefined) walk(chart.root, value, actors);
  return lit;
}

/** Returns the path of the node `name` inside the node at `path`. An empty `path` is the graph itself. */
export const joinNodePath = (path: string, name: string): string => (path === "" ? name : `${path}/${name}`);

/** Returns the indexes of the chart's nodes, by the node's path. */
export function nodeIndexesByPath(chart: ChartModel): ReadonlyMap<string, number> {
  const indexes = new Map<string, number>();
  const walk = (states: readonly DrawnState[], path: string): void => {
    for (const state of states) {
      const here = state.isNode ? joinNodePath(path, state.name) : path;
      if (state.isNode) indexes.set(here, state.index);
      walk(state.children, here);
    }
  };
  walk(chart.root, "");
  return indexes;
}

/** Returns the active nodes of a graph as text: their paths, joined by ` + `. */
export function activeNodesText(chart: ChartModel, value: ActiveStateValue | undefined): string {
  const lit = activeStateIndexes(chart, value);
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
