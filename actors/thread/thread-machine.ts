import { NO_CHILDREN, onlyChild, type Children } from "../child-actors.ts";
import { createActor, type ActorLogic, type ActorScope, type AnyActorRef, type Snapshot } from "../xstate.ts";
import type { SettledState } from "../../src/model/thread.ts";
import type { RunMachine } from "../run/run-machine.ts";
import {
  threadAssigns,
  threadGuards,
  runMessages,
  threadChart,
  type ThreadActorEvent,
  type ThreadContext,
  type ThreadEffects,
  type ThreadInput,
} from "./thread-chart.ts";

type Inner = keyof typeof threadChart.states.pending.states;
type ThreadValue = SettledState | "failed" | { readonly pending: Inner };

export type ThreadSnapshot = Snapshot<undefined> & {
  readonly value: ThreadValue;
  readonly context: ThreadContext;
  readonly children: Children;
};

export interface ThreadMachine extends ActorLogic<ThreadSnapshot, ThreadActorEvent, ThreadInput> {
  /** The chart that the logic reads. */
  readonly config: typeof threadChart;
  /** The snapshot of a thread without work, without the transitions from `waking`. */
  idleSnapshot(input: ThreadInput): ThreadSnapshot;
}

/** A name in the chart: one of `threadGuards`, `threadAssigns`, `runMessages`, or an effect. */
type ChartReference = string | { readonly type: string; readonly params: { readonly rest: SettledState } };
interface Transition {
  readonly guard?: ChartReference;
  readonly target?: string;
  readonly actions?: readonly ChartReference[];
}
type Table<F> = { readonly [name: string]: F | undefined };
type ChartFunction<T> = (
  context: ThreadContext,
  event: ThreadActorEvent,
  params: { readonly rest: SettledState },
) => T;

const guardTable = threadGuards as Table<ChartFunction<boolean>>;
const assignTable = threadAssigns as Table<ChartFunction<Partial<ThreadContext>>>;
const messageTable = runMessages as Table<(typeof runMessages)[keyof typeof runMessages]>;

interface State {
  readonly on?: { readonly [event: string]: readonly Transition[] };
  readonly always?: unknown;
  readonly type?: string;
}
const outer: { readonly [name: string]: State } = threadChart.states;
const inner: { readonly [name: string]: State } = threadChart.states.pending.states;
const { invoke } = threadChart.states.pending;
/** Transitions for the end of the run, which the chart lists as `onDone` and `onError`. */
const runTransitions: { readonly [event: string]: readonly Transition[] } = {
  "xstate.done.actor.run": invoke.onDone,
  "xstate.error.actor.run": invoke.onError,
};
const root: { readonly [event: string]: readonly Transition[] } = threadChart.on;

/**
 * A resolved transition target. `name`: its last part; `isWithin`: another inner state of `pending`, so that the run
 * is not stopped.
 */
interface ResolvedTarget {
  readonly name: string;
  readonly isWithin: boolean;
}
/** Resolved targets. The chart has few, and each message follows one. */
const resolvedTargets: ReadonlyMap<string, ResolvedTarget> = new Map(
  targetsIn(threadChart).map((at) => [at, resolveTarget(at)]),
);

function targetsIn(part: unknown): readonly string[] {
  if (typeof part !== "object" || part === null) return [];
  return Object.entries(part).flatMap(([name, within]) =>
    name === "target" && typeof within === "string" ? [within] : targetsIn(within),
  );
}

function resolveTarget(target: string): ResolvedTarget {
  const name = target.slice(target.lastIndexOf(".") + 1);
  return { name, isWithin: Object.hasOwn(inner, name) && target !== "pending.starting" };
}

const nothing = { rest: "idle" } as const;
const refName = (named: ChartReference) => (typeof named === "string" ? named : named.type);
const refParams = (named: ChartReference) => (typeof named === "string" ? nothing : named.params);

function find(
  transitions: readonly Transition[] | undefined,
  context: ThreadContext,
  event: ThreadActorEvent,
): Transition | undefined {
  if (transitions === undefined) return undefined;
  for (const one of transitions) {
    const { guard } = one;
    if (guard === undefined || guardTable[refName(guard)]?.(context, event, refParams(guard)) === true)
      return one;
  }
  return undefined;
}

/** The innermost transition that applies. */
function chooseTransition(
  { value, context }: ThreadSnapshot,
  event: ThreadActorEvent,
): Transition | undefined {
  const { type } = event;
  if (typeof value === "object") {
    return (
      find(inner[value.pending]?.on?.[type], context, event) ??
      find(outer["pending"]?.on?.[type] ?? runTransitions[type], context, event) ??
      find(root[type], context, event)
    );
  }
  return find(outer[value]?.on?.[type], context, event) ?? find(root[type], context, event);
}

/**
 * The thread's statechart as hand-written actor logic, which reads the chart as a table. A run is four messages to
 * its thread; with XState's interpreter they allocated a third of the memory that a run allocates. A test walks the
 * chart with XState and holds this logic to it, state by state.
 */
export function threadMachine(effects: ThreadEffects, run: RunMachine): ThreadMachine {
  type Scope = ActorScope<ThreadSnapshot, ThreadActorEvent>;

  function follow(
    snapshot: ThreadSnapshot,
    { target, actions = [] }: Transition,
    event: ThreadActorEvent,
    scope: Scope,
  ): ThreadSnapshot {
    const { thread, active, queue, stop, rest } = snapshot.context;
    const context = { thread, active, queue, stop, rest };
    const child = snapshot.children.get(invoke.id);
    for (const action of actions) {
      const name = refName(action);
      const change = assignTable[name]?.(context, event, refParams(action));
      if (change !== undefined) Object.assign(context, change);
      else {
        const told = messageTable[name]?.(context);
        if (told !== undefined) scope.defer(() => child?.send(told));
      }
    }
    if (target === undefined) return at(snapshot.value, context, snapshot.children);
    const { name, isWithin } = resolvedTargets.get(target) ?? resolveTarget(target);
    if (isWithin) {
      if (name === "starting") scope.defer(() => enter(name, context));
      return at({ pending: name as Inner }, context, snapshot.children);
    }
    // Stops the actor of a run that has not started, or whose thread is given up.
    if (child !== undefined && child.getSnapshot().status === "active") {
      scope.defer(() => scope.stopChild(child));
    }
    if (name === "pending") return begin(context, threadChart.states.pending.initial, scope);
    if (name === "starting") return begin(context, name, scope);
    return at(name as SettledState | "failed", context);
  }

  /** Entry actions of these states. */
  function enter(state: "waiting" | "starting", { thread, active }: ThreadContext): void {
    if (active === null) return;
    if (state === "waiting") effects.ask(thread, active);
    else effects.start(thread, active);
  }

  /** Enters `pending`: spawns the run's actor. */
  function begin(context: ThreadContext, state: "waiting" | "starting", scope: Scope): ThreadSnapshot {
    const { thread, active } = context;
    const child = createActor(run, {
      id: invoke.id,
      input: { thread, run: active ?? "", within: null },
      parent: scope.self as AnyActorRef,
    });
    scope.defer(() => {
      enter(state, context);
      child.start();
    });
    return at({ pending: state }, context, onlyChild(invoke.id, child as AnyActorRef));
  }

  /**
   * Builds a snapshot. All members are written out: an object literal that begins with a spread is slow to create and
   * slow to read.
   */
  function at(value: ThreadValue, context: ThreadContext, children = NO_CHILDREN): ThreadSnapshot {
    const status = value === "failed" ? "done" : "active";
    return { status, output: undefined, error: undefined, value, context, children } as ThreadSnapshot;
  }

  return {
    config: threadChart,
    idleSnapshot: (input) => at(input.rest, { stop: null, ...input }),
    getInitialSnapshot(scope, input) {
      const context = { stop: null, ...input };
      const start = { type: "xstate.init" } as unknown as ThreadActorEvent;
      const first = find(threadChart.states.waking.always, context, start);
      return first === undefined ? at(input.rest, context) : follow(at("idle", context), first, start, scope);
    },
    transition(snapshot, event, scope) {
      if (event.type === "xstate.stop") {
        const child = snapshot.children.get(invoke.id);
        if (child !== undefined) scope.defer(() => scope.stopChild(child));
        return { ...snapshot, status: "stopped", children: NO_CHILDREN } as ThreadSnapshot;
      }
      const transition = chooseTransition(snapshot, event);
      return transition === undefined ? snapshot : follow(snapshot, transition, event, scope);
    },
    getPersistedSnapshot: (snapshot) => ({ ...snapshot, children: {} }),
  };
}
