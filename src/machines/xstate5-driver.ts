/* oxlint-disable no-underscore-dangle -- names of XState */
import { md5Hex } from "../model/ids.ts";
import { isObject, type JsonObject, toStorable } from "../model/json.ts";
import { isPlain } from "../model/memory-size.ts";
import { kindOfActor, logicOf, machinesOf, sourcesOf } from "./actor-logic.ts";
import { copyOfSnapshot } from "./stored-actor-references.ts";
import { withNonChildReferences } from "./non-child-references.ts";
import { MachineInterpreter, promiseInput, RootActorFactory } from "./machine-interpreter.ts";
import type { DeclaredSchemas } from "./declared-schemas.ts";
import type {
  ActorResult,
  PossibleChildMachine,
  DelayedTransition,
  MachineDriver,
  StoredSnapshot,
  MacrostepResult,
} from "./machine-driver.ts";
import { toStorableWithErrors } from "./stored-errors.ts";
import {
  allStates,
  isMachine,
  type Machine,
  type Snapshot,
  type StateNode,
  type XStateActor,
  type XStateLibrary,
} from "./xstate-types.ts";

/** Creates the driver of a machine of XState 5. It uses the pure transition functions of the actors' logic. */
export function createXState5Driver(
  xstate: XStateLibrary,
  machine: Machine,
  schemas: DeclaredSchemas | null = null,
): MachineDriver {
  const roots = new RootActorFactory(xstate, machine);
  for (const one of machinesOf(machine)) {
    copyDeclaredContext(one);
    for (const src of sourcesOf(one)) copyInitialState(logicOf(one, src));
  }
  const restore = ({ value, context, rest }: StoredSnapshot) =>
    // The snapshot is copied, because XState writes references to actors into the context.
    new MachineInterpreter(roots, { snapshot: copyOfSnapshot({ ...rest, value, context }) });
  const resultOf = (interpreter: MachineInterpreter): MacrostepResult => {
    const { root, effects } = interpreter;
    const { status, output, error } = root._snapshot;
    if (status === "error") throw error;
    const { value, context, rest } = persisted(machine, root._snapshot);
    return {
      snapshot: { value, context, rest: withNonChildReferences(rest, interpreter.nonChildReferences()) },
      status: status === "active" ? "active" : "done",
      output: toStorableWithErrors(output ?? null, "output"),
      effects,
    };
  };
  return {
    hash: md5Hex(
      machinesOf(machine)
        .map(({ definition }) => JSON.stringify(definition, describeFunction))
        .join() + (schemas?.fingerprint ?? ""),
    ),
    schemas,
    version: machine.version ?? null,
    events: eventsOf(allStates(machine.root)),
    states: statesOf(machine).map(pathOf),
    whyNotState: (value) => stateValueFault(machine.root, value),
    enteredState(name, current) {
      const node = statesOf(machine).find((one) => pathOf(one) === name || one.id === name.replace(/^#/, ""));
      if (node === undefined) return undefined;
      const value = withActive(machine.root, node.path, current);
      const resolved = machine.resolveState({ value, context: {} });
      return { value: toStorable(resolved.value, "state"), isLeft: isOfLeftState(machine, resolved._nodes) };
    },
    begin: (input) => resultOf(new MachineInterpreter(roots, { input })),
    take(stored, message) {
      const interpreter = restore(stored);
      interpreter.deliver(message);
      return resultOf(interpreter);
    },
    accepted(stored) {
      const { _snapshot: snapshot } = restore(stored).root;
      const possible = possibleEvents(snapshot._nodes);
      const named = eventsOf(snapshot._nodes);
      const events = named.filter((type) => possible.has(type));
      const forbidden = named.filter((type) => !possible.has(type));
      const meta = toStorable(snapshot.getMeta(), "meta") as JsonObject;
      const can = (event: object) => snapshot.can(event);
      return { tags: [...snapshot.tags], meta, events, forbidden, can };
    },
    completed(stored) {
      const snapshot = withInvokedActors(machine, restore, stored);
      const interpreter = restore(snapshot);
      const delayed = delayedTransitions(machine, interpreter.root);
      return { snapshot, working: interpreter.promises(), delayed };
    },
    startActor({ at, owner, src, input }, emit) {
      const above = owner.reduce((one, name) => logicOf(one, name) as Machine, machine);
      const actor = xstate.createActor(logicOf(above, src), { id: at.at(-1), input });
      const result = new Promise<ActorResult>((resolve) => {
        actor.subscribe({
          complete: () => resolve({ output: actor.getSnapshot().output }),
          error: (error) => resolve({ error }),
        });
        actor.on("*", (event) => {
          try {
            emit(toStorableWithErrors(event, "emit"));
          } catch (error) {
            // The error becomes the result of the actor. If it were not caught, XState would throw it again in a later turn of the event
            // loop, where nobody can catch it, and the process would end.
            resolve({ error });
          }
        });
      });
      actor.start();
      return { result, stop: () => void actor.stop() };
    },
    childMachines: () => childMachinesOf(xstate, machine),
  };
}

/**
 * Makes each actor of a machine begin with a copy of the context that the machine's configuration declares as an object. XState gives the
 * same object to all actors, so an action that changed it in place would change it for the threads of all tenants. A configuration that is
 * sealed or frozen cannot be changed, and keeps its one object.
 */
function copyDeclaredContext({ config }: Machine): void {
  const declared = Object.getOwnPropertyDescriptor(config, "context");
  if (declared?.configurable !== true || !isObject(declared.value)) return;
  const { value: context } = declared;
  Object.defineProperty(config, "context", {
    get: () => copyContainers(context),
    enumerable: true,
    configurable: true,
  });
}

/** Marks a `getInitialSnapshot` that {@link copyInitialState} has replaced. */
const COPIES = Symbol("copies the initial state");

interface TransitionLogic {
  getInitialSnapshot: ((...given: readonly unknown[]) => { readonly context?: unknown }) & {
    readonly [COPIES]?: true;
  };
}

/**
 * Makes each actor of `fromTransition` logic begin with a copy of the logic's initial state. XState gives the same object to all actors, as
 * it does with a declared context. Frozen logic cannot be changed, and keeps its one object.
 */
function copyInitialState(logic: unknown): void {
  if (kindOfActor(logic) !== "transition" || Object.isFrozen(logic)) return;
  const transition = logic as TransitionLogic;
  const first = transition.getInitialSnapshot;
  if (first[COPIES]) return;
  const copying = (...given: readonly unknown[]) => {
    const snapshot = first.apply(transition, [...given]);
    return { ...snapshot, context: copyContainers(snapshot.context) };
  };
  transition.getInitialSnapshot = Object.assign(copying, { [COPIES]: true as const });
}

/** A copy of the arrays and plain objects of a value, with the same other values in it. A cycle is copied as a cycle. */
function copyContainers(value: unknown, copies = new Map<object, unknown>()): unknown {
  if (typeof value !== "object" || value === null || !(Array.isArray(value) || isPlain(value))) return value;
  const known = copies.get(value);
  if (known !== undefined) return known;
  const copy: Record<string, unknown> | unknown[] = Array.isArray(value) ? [] : {};
  copies.set(value, copy);
  for (const [key, member] of Object.entries(value))
    Object.defineProperty(copy, key, {
      value: copyContainers(member, copies),
      writable: true,
      enumerable: true,
      configurable: true,
    });
  return copy;
}

const pathOf = ({ path }: StateNode) => path.join(".");

/** The states in which a machine can be. History states are left out, because they only stand for states that were active before. */
const statesOf = ({ root }: Machine) =>
  allStates(root).filter((node) => node !== root && node.type !== "history");

/**
 * Why a state value is not one of a state node; undefined if it is. XState would accept a value that names no state of a region, and the
 * machine would then take no event in this region.
 */
function stateValueFault(node: StateNode, value: unknown): string | undefined {
  const active = typeof value === "string" ? { [value]: undefined } : value;
  const at = node.parent === undefined ? "the machine" : `"${pathOf(node)}"`;
  const known = Object.values(node.states).filter(({ type }) => type !== "history");
  const names = known.map(({ key }) => key).join(", ") || "none";
  if (!isObject(active)) return `must be the name of a state of ${at}, or an object of them: ${names}`;
  const keys = Object.keys(active);
  if (node.type === "compound" && keys.length !== 1) return `must name exactly one state of ${at}: ${names}`;
  for (const key of keys) {
    const inner = known.find((one) => one.key === key);
    if (inner === undefined)
      return `names ${JSON.stringify(key.slice(0, 128))}, which is no state of ${at}; it has ${names}`;
    const fault = active[key] === undefined ? undefined : stateValueFault(inner, active[key]);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

/**
 * Returns a state value below `node` in which the state at the given path is active. Other regions of parallel states keep their value in
 * `current`.
 */
function withActive(node: StateNode, [key, ...below]: readonly string[], current: unknown): JsonObject {
  if (key === undefined) return {};
  const before = isObject(current) ? current : {};
  const inner = withActive(node.states[key] as StateNode, below, before[key]);
  return node.type === "parallel" ? { ...before, [key]: inner } : { [key]: inner };
}

function childMachinesOf(
  xstate: XStateLibrary,
  machine: Machine,
  above: readonly Machine[] = [],
): readonly PossibleChildMachine[] {
  const around = [...above, machine];
  return sourcesOf(machine).flatMap((src) => {
    const child = logicOf(machine, src);
    if (!isMachine(child)) return [];
    const within = around.includes(child) ? [] : childMachinesOf(xstate, child, around);
    const own = { path: [src], firstContext: () => firstContextOf(xstate, child) };
    return [own, ...within.map((one) => ({ ...one, path: [src, ...one.path] }))];
  });
}

/**
 * Returns the context with which a child machine begins for the input `{}`; undefined if it cannot begin with this input. The child begins
 * within a parent machine that handles no events, because `sendParent` throws in a machine without a parent.
 */
function firstContextOf(xstate: XStateLibrary, machine: Machine): JsonObject | undefined {
  try {
    const parent = xstate.createMachine({ invoke: { id: "child", src: machine, input: {} } });
    const { root } = new MachineInterpreter(new RootActorFactory(xstate, parent), { input: undefined });
    const child = root._snapshot.children?.["child"];
    if (child === undefined || child._snapshot.status === "error") return undefined;
    return persisted(machine, child._snapshot).context;
  } catch {
    return undefined;
  }
}

/**
 * Adds the promise actors that the active states of a migrated snapshot invoke, and drops the children of other states. XState starts the
 * actor of a state only when it enters the state, and a migration enters no state.
 */
function withInvokedActors(
  machine: Machine,
  restore: (stored: StoredSnapshot) => MachineInterpreter,
  stored: StoredSnapshot,
): StoredSnapshot {
  const { rest } = stored;
  if (rest["status"] !== "active") return stored;
  const { root } = restore({ ...stored, rest: { ...rest, children: {} } });
  const { _nodes: nodes, context } = root._snapshot;
  const active = nodes.flatMap(({ invoke }) => invoke);
  const isLeft = isOfLeftState(machine, nodes);
  const given = isObject(rest["children"]) ? rest["children"] : {};
  const children = Object.fromEntries(Object.entries(given).filter(([id]) => !isLeft(id)));
  for (const { id, src, systemId, input, onSnapshot } of active) {
    if (Object.hasOwn(children, id)) continue;
    const kind = kindOfActor(logicOf(machine, src));
    if (kind !== "promise")
      throw new Error(
        `"${src}" (${kind} logic) is invoked in the state to which it migrates, and has no child "${id}" in the snapshot`,
      );
    const event = { type: "xstate.init" };
    const made: unknown = typeof input === "function" ? input({ context, event, self: root }) : input;
    const snapshot = { status: "active", input: promiseInput(made, id) };
    children[id] = { snapshot, src, systemId, syncSnapshot: onSnapshot !== undefined };
  }
  return { ...stored, rest: toStorable({ ...rest, children }, "snapshot") as JsonObject };
}

/** The `after` transitions of an active machine's active states. A delay that the machine does not define counts as 0, as in XState. */
function delayedTransitions(machine: Machine, root: XStateActor): readonly DelayedTransition[] {
  const { status, context, _nodes: nodes } = root._snapshot;
  if (status !== "active") return [];
  const delays = new Map<string, number>();
  for (const { eventType, delay } of nodes.flatMap(({ after }) => after)) {
    const named = typeof delay === "string" ? machine.implementations.delays?.[delay] : delay;
    const event = { type: "xstate.init" };
    const made: unknown =
      typeof named === "function" ? named({ context, event, self: root }, undefined) : named;
    delays.set(eventType, typeof made === "number" ? made : 0);
  }
  return [...delays].map(([id, delay]) => ({ id, delay }));
}

/** Returns whether an actor with a given id was invoked by a state that is not among the active states `nodes`. */
function isOfLeftState(machine: Machine, nodes: readonly StateNode[]): (id: string) => boolean {
  const ids = new Set(nodes.flatMap(({ invoke }) => invoke.map(({ id }) => id)));
  const other = new Set(allStates(machine.root).flatMap(({ invoke }) => invoke.map(({ id }) => id)));
  // XState gives an actor without an id of its own the id `INDEX.STATE`: its index in the `invoke`, and the id of the state.
  return (id) => !ids.has(id) && (other.has(id) || /^\d+\./.test(id));
}

/** The descriptors of events for which the states have transitions, without XState's own events. */
function eventsOf(nodes: readonly StateNode[]): readonly string[] {
  const types = new Set(nodes.flatMap(({ ownEvents }) => ownEvents));
  return [...types].filter((type) => type !== "" && !type.startsWith("xstate."));
}

/**
 * The descriptors for which a transition may be taken if its guard allows it. Descriptors that an inner state forbids are left out, even if
 * an outer state handles them.
 */
function possibleEvents(nodes: readonly StateNode[]): ReadonlySet<string> {
  const found = new Set<string>();
  const outer = new Set(nodes.map(({ parent }) => parent));
  for (const leaf of nodes) {
    if (outer.has(leaf)) continue;
    const decided = new Set<string>();
    for (let node: StateNode | undefined = leaf; node !== undefined; node = node.parent) {
      for (const [type, list] of node.transitions) {
        if (decided.has(type)) continue;
        if (list.some(({ target, actions }) => target !== undefined || actions.length > 0)) found.add(type);
        if (list.some(({ guard }) => guard === undefined)) decided.add(type);
      }
    }
  }
  return found;
}

/** Replaces a function, which is a guard or an action, by its name, so that the hash depends on the name. */
const describeFunction = (_: string, value: unknown): unknown =>
  typeof value === "function" ? value.name : value;

function persisted(machine: Machine, snapshot: Snapshot): StoredSnapshot {
  const context = toStorableWithErrors(snapshot.context, "context");
  if (!isObject(context)) throw new TypeError(`The context of the machine "${machine.id}" must be an object`);
  return { value: toStorable(snapshot.value, "state"), context, rest: persistedRest(machine, snapshot) };
}

function persistedRest(machine: Machine, snapshot: Snapshot): JsonObject {
  const { status, output, error, historyValue, children } = snapshot;
  // Only these two members need `getPersistedSnapshot`. It copies the whole snapshot several times, so it is called only if one of them is
  // not empty. References to actors in the context need no conversion here, because an actor has a method `toJSON`.
  if (hasMembers(historyValue) || hasMembers(children ?? {})) {
    // Without the context, because XState would search an Error in it without end if a member of it contains itself.
    const full = machine.getPersistedSnapshot({ ...snapshot, context: {} });
    const rest = { status, output, error, historyValue: full.historyValue, children: full.children };
    return toStorableWithErrors(rest, "snapshot") as JsonObject;
  }
  const rest: Record<string, unknown> = { status };
  if (output !== undefined) rest["output"] = toStorableWithErrors(output, "snapshot.output");
  if (error !== undefined) rest["error"] = toStorableWithErrors(error, "snapshot.error");
  rest["historyValue"] = {};
  rest["children"] = {};
  return rest;
}

function hasMembers(object: object): boolean {
  for (const _ in object) return true;
  return false;
}
