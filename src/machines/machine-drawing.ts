import type { DrawnEdge, DrawnNode, GraphDrawing } from "../model/graph-drawing.ts";
import type { ChartActor, ChartState, ChartTransition, StatechartDefinition } from "../model/statechart.ts";
import { logicOf } from "./actor-logic.ts";
import { STATE_KEY } from "./machine-state.ts";
import {
  allStates,
  type InvokedActor,
  isMachine,
  type Machine,
  type StateNode,
  type Transition,
} from "./xstate-types.ts";

/** All transitions of a state, by event. Transitions without an event are under the key `always`. */
function transitionsOf(node: StateNode): ReadonlyMap<string, readonly Transition[]> {
  const found = new Map(node.transitions);
  if (node.always !== undefined && node.always.length > 0) found.set("always", node.always);
  return found;
}

const nameOf = ({ path }: StateNode) => path.join(".");

/** Converts a machine to the drawing of a graph that clients show: its states become nodes, and its transitions edges. */
export function drawMachine({ root }: Machine): GraphDrawing {
  const nodes: DrawnNode[] = [schemaNode("__start__")];
  const edges: DrawnEdge[] = firstStates(root).map((to) => edge("__start__", nameOf(to), false));
  for (const node of allStates(root).slice(1)) {
    const id = nameOf(node);
    nodes.push({ id, type: "runnable", data: { id: ["xstate", "StateNode"], name: id } });
    for (const first of firstStates(node)) edges.push(edge(id, nameOf(first), false));
    for (const [event, list] of transitionsOf(node)) {
      for (const { target = [], guard } of list) {
        for (const to of target) edges.push(edge(id, nameOf(to), guard !== undefined, event));
      }
    }
    if (node.type === "final" && node.parent === root) edges.push(edge(id, "__end__", false));
  }
  for (const [event, list] of transitionsOf(root)) {
    for (const { target = [] } of list) {
      // The root is not drawn as a node. Its transitions are drawn from each of its child states, because they may be taken in any of
      // these.
      for (const to of target) {
        for (const from of Object.values(root.states))
          edges.push(edge(nameOf(from), nameOf(to), true, event));
      }
    }
  }
  if (edges.some(({ target }) => target === "__end__")) nodes.push(schemaNode("__end__"));
  return { nodes, edges };
}

function firstStates(node: StateNode): readonly StateNode[] {
  if (node.type === "parallel") return Object.values(node.states).filter(({ type }) => type !== "history");
  return node.type === "compound" ? node.initial.target : [];
}

const schemaNode = (id: string): DrawnNode => ({
  id,
  type: "schema",
  data: { $schema: "https://json-schema.org/draft/2020-12/schema" },
});

const edge = (source: string, target: string, conditional: boolean, data?: string): DrawnEdge =>
  data === undefined ? { source, target, conditional } : { source, target, conditional, data };

/** The statechart of a machine, with `name` as its id. */
export function chartOfMachine(machine: Machine, name: string): StatechartDefinition {
  return { ...chartState({ machine, above: [], prefix: "" }, machine.root), id: name, valueKey: STATE_KEY };
}

/** A machine of which a statechart is being made. */
interface ChartSource {
  readonly machine: Machine;
  /** The machines around this one, outermost first: each invokes the next. */
  readonly above: readonly Machine[];
  /** A prefix of the ids of the machine's states, which makes them unique in the whole statechart. Empty for the root machine. */
  readonly prefix: string;
}

function chartState(source: ChartSource, node: StateNode): ChartState & { readonly id: string } {
  const states = Object.entries(node.states).map(([key, inner]) => [key, chartState(source, inner)] as const);
  const on = [...transitionsOf(node)].map(
    ([event, list]) => [event, list.flatMap((one) => chartTransitions(source, one))] as const,
  );
  const [first] = node.type === "compound" ? node.initial.target : [];
  return {
    id: source.prefix + node.id,
    ...((node.type === "parallel" || node.type === "final") && { type: node.type }),
    ...(first !== undefined && { initial: first.path[node.path.length] ?? first.key }),
    ...(node.description !== undefined && { description: node.description }),
    ...(on.length > 0 && { on: Object.fromEntries(on) }),
    ...(node.invoke.length > 0 && { invoke: node.invoke.map((one) => chartActor(source, one)) }),
    ...(states.length > 0 && { states: Object.fromEntries(states) }),
  };
}

function chartActor({ machine, above, prefix }: ChartSource, { id, src }: InvokedActor): ChartActor {
  const logic = logicOf(machine, src);
  const around = [...above, machine];
  if (!isMachine(logic) || around.includes(logic)) return { id, src };
  const source = { machine: logic, above: around, prefix: `${prefix}${id}/` };
  return { id, src, chart: chartState(source, logic.root) };
}

function chartTransitions(
  { prefix }: ChartSource,
  { target = [], guard, actions }: Transition,
): readonly ChartTransition[] {
  const condition = guard !== undefined && { guard: guardName(guard) };
  // A transition without a target and without actions only forbids its event, so it is not drawn.
  if (target.length === 0) return actions.length === 0 ? [] : [{ ...condition }];
  return target.map(({ id }) => ({ target: `#${prefix}${id}`, ...condition }));
}

export function guardName(guard: unknown): string {
  if (typeof guard === "string") return guard;
  const { type, name } = guard as { readonly type?: string; readonly name?: string };
  return type ?? (name || "guarded");
}
