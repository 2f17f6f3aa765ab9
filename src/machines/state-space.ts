import { logicOf, machinesOf, sourcesOf } from "./actor-logic.ts";
import { guardName } from "./machine-drawing.ts";
import { type PureLibrary, pureFunctions } from "./pure-transitions.ts";
import { allStates, type Machine, type Snapshot, type StateNode, type Transition } from "./xstate-types.ts";

/** Thrown if the states of a machine cannot be explored. The message says why. */
export class UnexploredError extends Error {}

/** A combination of active states in which the machine can be after a macrostep. */
export interface StateConfiguration {
  /** The paths of the innermost active states. */
  readonly active: readonly string[];
  readonly steps: readonly PossibleStep[];
}

/** An event that may occur in a configuration, with its possible results. */
export interface PossibleStep {
  /** A descriptor of the event, such as `APPROVE`, `order.*` or `xstate.done.actor.charge`. */
  readonly event: string;
  /** The possible results of the event. If there are several, guards decide between them. */
  readonly outcomes: readonly Outcome[];
}

export interface Outcome {
  /** The key of the configuration in which the macrostep ends. */
  readonly to: string;
  /** The ids of all states that the macrostep enters, including states that it exits again. */
  readonly entered: ReadonlySet<string>;
  /** The results of guards that lead to this outcome, such as `isAffordable holds`. Empty if the outcome does not depend on guards. */
  readonly guards: readonly string[];
}

export interface StateSpace {
  readonly configurations: ReadonlyMap<string, StateConfiguration>;
  /** The possible outcomes of the machine's start. */
  readonly initial: readonly Outcome[];
  /**
   * The types of events that the machine sends to itself with a delay or by `sendTo`, and of those that its children send to it. Null if any
   * type is possible, because a function creates such an event.
   */
  readonly selfSent: ReadonlySet<string> | null;
}

/** The functions of XState 5 that an exploration uses. */
export interface ExploringLibrary extends PureLibrary {
  createMachine(config: object): Machine;
}

/** The largest number of guard calls in one macrostep. If there are more, the macrostep is considered endless. */
const MAX_GUARD_CALLS = 100;
/** The largest number of transitions without a guard in one macrostep. If there are more, the macrostep is considered endless. */
const MAX_TRANSITIONS = 1_000;
/** The largest number of combinations of guard results that are tried for one macrostep. */
const MAX_OUTCOMES = 1_000;

/** The type of an entry action that each state of the explored machine gets. It shows which states a macrostep enters. */
const ENTERED = "heddle.entered";
/** The type of an event that only a transition for `*` takes. XState cannot send the type `*`. */
const ANY_EVENT = "any other event";

/**
 * Explores all configurations in which a machine can be. The machine's data is ignored: each guard may hold or not, each actor may succeed
 * or fail, and any timer that is set may fire next. So the result contains everything that the machine can do, and perhaps more.
 * @throws UnexploredError if there are more than `maxConfigurations` configurations, if a macrostep fails, or if the machine has actions
 * whose events cannot be known
 */
export function exploreMachine(
  xstate: ExploringLibrary,
  machine: Machine,
  maxConfigurations: number,
): StateSpace {
  const guards = new GuardChoices();
  const selfSent = selfSentEvents(machine);
  const explored = xstate.createMachine(withoutData(machine, machine.root, guards));
  const pure = pureFunctions(xstate, explored);
  const configurations = new Map<string, StateConfiguration>();
  const found = new Map<string, Snapshot>();
  const outcomesOf = (compute: () => ReturnType<typeof pure.begin>): readonly Outcome[] => {
    const outcomes = new Map<string, Outcome>();
    for (const { result, asked } of guards.all(() => macrostep(compute))) {
      const [snapshot, actions] = result;
      const key = keyOf(snapshot);
      const entered = new Set(
        actions.flatMap(({ type, params }) => (type === ENTERED ? [(params as { id: string }).id] : [])),
      );
      const same = JSON.stringify([key, ...[...entered].toSorted()]);
      if (!outcomes.has(same)) outcomes.set(same, { to: key, entered, guards: asked });
      if (!found.has(key)) found.set(key, snapshot);
      if (found.size > maxConfigurations)
        throw new UnexploredError(
          `the machine has more than ${maxConfigurations.toLocaleString("en")} combinations of active states`,
        );
    }
    const all = [...outcomes.values()];
    return all.length === 1 ? all.map((one) => ({ ...one, guards: [] })) : all;
  };
  const initial = outcomesOf(() => pure.begin(undefined));
  // The loop also visits the configurations that it adds to the map.
  for (const [key, snapshot] of found) {
    const events = snapshot.status === "active" ? eventsOf(snapshot) : [];
    const steps = events
      .map((event) => {
        const type = event === "*" ? ANY_EVENT : event;
        return { event, outcomes: outcomesOf(() => pure.take(snapshot, { type })) };
      })
      .filter(({ outcomes }) => outcomes.some(({ to, entered }) => to !== key || entered.size > 0));
    // oxlint-disable-next-line no-underscore-dangle -- XState's name for the active states
    const innermost = snapshot._nodes.filter(({ type }) => type === "atomic" || type === "final");
    configurations.set(key, { active: innermost.map(({ path }) => path.join(".")), steps });
  }
  return { configurations, initial, selfSent };
}

/** Computes a macrostep. @throws UnexploredError if the macrostep fails: XState then throws an error, or returns it in the snapshot */
function macrostep<T extends readonly [Snapshot, unknown]>(compute: () => T): T {
  let failure: unknown;
  try {
    const result = compute();
    if (result[0].status !== "error") return result;
    failure = result[0].error;
  } catch (thrown) {
    failure = thrown;
  }
  // The last line of XState's message says what is wrong; the lines before say where.
  const why = (failure as Error).message.split("\n").at(-1);
  throw new UnexploredError(`the machine fails or does not come to rest: ${why}`);
}

/**
 * The descriptors of the events that may occur in a configuration. Events of the type `xstate.done.state.*` are left out, because XState
 * raises them itself, within the macrostep.
 */
function eventsOf(snapshot: Snapshot): readonly string[] {
  // oxlint-disable-next-line no-underscore-dangle -- XState's name for the active states
  const all = new Set(snapshot._nodes.flatMap(({ ownEvents }) => ownEvents));
  return [...all].filter((type) => type !== "" && !type.startsWith("xstate.done.state."));
}

function keyOf({ value, historyValue }: Snapshot): string {
  const history = Object.entries(historyValue).map(([id, nodes]) => [id, nodes.map((node) => node.id)]);
  return JSON.stringify(history.length === 0 ? [value] : [value, history]);
}

/**
 * Replaces a machine's guards by guards whose results this class chooses, because there is no data from which to compute them. `all`
 * repeats a computation until each combination of results was tried.
 */
class GuardChoices {
  #answers: readonly boolean[] = [];
  #asked: { readonly name: string; readonly holds: boolean }[] = [];

  #transitions = 0;

  /**
   * The guard of transitions that have none in the machine. It always returns true, but throws if a macrostep takes too many transitions.
   */
  readonly none = (): boolean => {
    if (++this.#transitions > MAX_TRANSITIONS)
      throw new RangeError(`one event takes more than ${MAX_TRANSITIONS} transitions`);
    return true;
  };

  /** Creates the guard that replaces the machine's guard of this name. It returns the chosen results. */
  guard(name: string): () => boolean {
    return () => {
      const holds = this.#answers[this.#asked.length] ?? true;
      this.#asked.push({ name, holds });
      if (this.#asked.length > MAX_GUARD_CALLS)
        throw new RangeError(`one event asks guards more than ${MAX_GUARD_CALLS} times`);
      return holds;
    };
  }

  *all<T>(compute: () => T): Generator<{ readonly result: T; readonly asked: readonly string[] }> {
    const pending: (readonly boolean[])[] = [[]];
    let count = 0;
    for (let answers = pending.pop(); answers !== undefined; answers = pending.pop()) {
      if (++count > MAX_OUTCOMES)
        throw new UnexploredError(`one event asks guards that have more than ${MAX_OUTCOMES} combinations`);
      this.#answers = answers;
      this.#asked = [];
      this.#transitions = 0;
      const result = compute();
      const asked = this.#asked;
      for (let index = answers.length; index < asked.length; index++)
        pending.push([...asked.slice(0, index).map(({ holds }) => holds), false]);
      yield {
        result,
        asked: asked.map(({ name, holds }) => `${name} ${holds ? "holds" : "does not hold"}`),
      };
    }
  }
}

/**
 * Returns the configuration of a machine with the same states and transitions, but without context, actors and timers. `guards` replaces
 * the guards of the machine.
 */
function withoutData(machine: Machine, node: StateNode, guards: GuardChoices): object {
  const transition = ({ target, guard, actions, reenter }: Transition & { readonly reenter?: boolean }) => ({
    ...(target !== undefined && { target: target.map((one) => `#${targetId(machine, one)}`) }),
    guard: guard === undefined ? guards.none : isStateIn(guard) ? guard : guards.guard(guardName(guard)),
    actions: raises(machine, node, actions),
    reenter: reenter ?? false,
  });
  const { id, type, entry, exit, always } = node;
  const own = targetId(machine, node);
  const { history, target } = (node as unknown as { readonly config: HistoryConfig }).config;
  if (type === "history") return { id: own, type, history, ...(target !== undefined && { target }) };
  const states = Object.entries(node.states).map(([key, inner]) => [
    key,
    withoutData(machine, inner, guards),
  ]);
  const on = [...node.transitions].map(([event, list]) => [
    event === `xstate.done.state.${id}` ? `xstate.done.state.${own}` : event,
    list.map(transition),
  ]);
  const [first] = type === "compound" ? node.initial.target : [];
  return {
    id: own,
    ...((type === "parallel" || type === "final") && { type }),
    ...(first !== undefined && {
      initial: { target: first.key, actions: raises(machine, node, node.initial.actions) },
    }),
    entry: [{ type: ENTERED, params: { id } }, ...raises(machine, node, entry)],
    exit: raises(machine, node, exit),
    on: Object.fromEntries(on),
    ...(always !== undefined && { always: always.map(transition) }),
    ...(states.length > 0 && { states: Object.fromEntries(states) }),
  };
}

/**
 * The id of a state in the explored machine, where each target is an id. XState reads an id up to its first dot, and the rest as a path from
 * there, so dots that begin no path are replaced.
 */
function targetId({ root }: Machine, { id, path }: StateNode): string {
  const isPath = !root.id.includes(".") && id === [root.id, ...path].join(".");
  return isPath ? id : id.replaceAll(".", "\u2024");
}

interface HistoryConfig {
  readonly history?: unknown;
  readonly target?: unknown;
}

/** Whether a guard is XState's `stateIn`, which is not replaced because it depends only on active states, not on data. */
const isStateIn = (guard: unknown) => typeof guard === "function" && "stateValue" in guard;

/** A built-in action of XState: the function that `raise` or `sendTo` returns, with these members. */
interface BuiltIn {
  readonly type?: string;
  readonly event?: unknown;
  readonly delay?: unknown;
  readonly to?: unknown;
}

/** Returns the implementation of an action. A named action may be implemented by a built-in one. */
function resolved(machine: Machine, action: unknown): BuiltIn {
  const { actions = {} } = machine.implementations as { readonly actions?: { [name: string]: unknown } };
  const name = typeof action === "object" ? (action as { readonly type?: string }).type : action;
  return ((typeof name === "string" ? actions[name] : action) ?? {}) as BuiltIn;
}

/**
 * Returns the actions that raise events within the macrostep. All other actions need data or do not change the state.
 * @throws UnexploredError if the raised event depends on data
 */
function raises(machine: Machine, node: StateNode, actions: readonly unknown[]): readonly unknown[] {
  return actions.flatMap((action) => {
    const { type, event, delay } = resolved(machine, action);
    if (type === "xstate.enqueueActions")
      throw new UnexploredError(`#${node.id} has enqueueActions, and what they raise depends on data`);
    if (type !== "xstate.raise" || delay !== undefined) return [];
    if (typeof event === "function")
      throw new UnexploredError(`#${node.id} raises an event that a function makes`);
    return [resolved(machine, action)];
  });
}

function selfSentEvents(machine: Machine): StateSpace["selfSent"] {
  const types = new Set<string>();
  const [, ...children] = machinesOf(machine);
  // Events of children below a child are not for the machine, unless the child forwards them. Then a function creates the event.
  const direct = children.filter((child) =>
    sourcesOf(machine).some((src) => logicOf(machine, src) === child),
  );
  for (const one of [machine, ...direct]) {
    for (const node of allStates(one.root)) {
      const transitions = [...node.transitions.values(), node.always ?? []].flat();
      const actions = [...node.entry, ...node.exit, ...transitions.flatMap(({ actions: all }) => all)];
      for (const action of actions) {
        const { type, event, delay, to } = resolved(one, action);
        if (type === "xstate.enqueueActions" && one !== machine) return null;
        // A name is that of another actor, except for XState's names of the parent and of the actor itself. A function may return any actor.
        const isSent =
          type === "xstate.sendTo"
            ? typeof to !== "string" || to.startsWith("#_")
            : type === "xstate.raise" && delay !== undefined && one === machine;
        if (!isSent) continue;
        if (typeof event !== "object" || event === null) return null;
        types.add((event as { readonly type: string }).type);
      }
    }
  }
  return types;
}
