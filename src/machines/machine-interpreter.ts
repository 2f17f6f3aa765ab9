/* oxlint-disable no-underscore-dangle -- names of XState */
import { toPlainError } from "../model/errors.ts";
import { isObject, type JsonObject } from "../model/json.ts";
import type { ChildMachineStatus } from "../model/machine-child.ts";
import { kindOfActor, FORBIDDEN_ACTOR_ID } from "./actor-logic.ts";
import type {
  Address,
  AddressedEvent,
  ChildState,
  Effect,
  MachineEvent,
  PromiseStart,
} from "./machine-driver.ts";
import {
  actorsIn,
  type NonChildReference,
  nonChildReferencesOf,
  isActor,
  putReference,
} from "./non-child-references.ts";
import { fromStoredThrown, toStorableWithErrors } from "./stored-errors.ts";
import {
  type Action,
  type ActorScope,
  isMachine,
  type Machine,
  type Snapshot,
  type XStateActor,
  type XStateLibrary,
} from "./xstate-types.ts";

/**
 * The largest number of events, and of transitions, in one step. Without it, actors that keep sending events to each other, or a circle of
 * `always` or `raise`, would never end the step.
 */
const MAX_EVENTS_PER_STEP = 10_000;

/** How a machine and its child actors start: with an input, or from a stored snapshot. */
export type MachineStart = { readonly input: unknown } | { readonly snapshot: JsonObject };

/**
 * Creates the root actors of a machine, without options: XState copies options several times, which takes longer than the rest of the
 * creation. The input or the stored snapshot reaches an actor through the `getInitialSnapshot` of its logic.
 */
export class RootActorFactory {
  readonly #xstate: XStateLibrary;
  readonly #machine: Machine;
  readonly #logic: object;
  /** Computes the first snapshot of the actor that is being created. */
  #begin: ((scope: ActorScope) => Snapshot) | undefined;

  constructor(xstate: XStateLibrary, machine: Machine) {
    this.#xstate = xstate;
    this.#machine = machine;
    const getInitialSnapshot = (scope: ActorScope) => this.#begin?.(scope);
    this.#logic = Object.create(machine, { getInitialSnapshot: { value: getInitialSnapshot } }) as object;
  }

  /** `created` is called with the actor before its first snapshot is computed. */
  create(start: MachineStart, created: (root: XStateActor) => void): XStateActor {
    const machine = this.#machine;
    this.#begin = (scope) => {
      created(scope.self);
      return "snapshot" in start
        ? machine.restoreSnapshot(start.snapshot, scope)
        : machine.getInitialSnapshot(scope, start.input);
    };
    try {
      return this.#xstate.createActor(this.#logic);
    } finally {
      this.#begin = undefined;
    }
  }
}

/** What is known of an actor during one step. */
interface ActorStep {
  /** The actions that the actor's logic has returned and that are not carried out yet. */
  readonly actions: Action[];
  /** The tasks that the actor runs once it has started, or after its current event. Undefined if the actor is idle. */
  queue: (() => void)[] | undefined;
  isStarted: boolean;
  isStopped: boolean;
  /** Whether an earlier step started the actor. */
  isRestored: boolean;
  /** Whether the actor is a child machine that has begun, processed an event, or been stopped in this step. */
  isChanged: boolean;
}

/**
 * Executes one step of a machine and its child actors. The actors are XState's own objects, but are not started with `start()`: this class
 * calls the pure transition functions of their logic, and carries out the returned actions in the same order as XState. Promises, timers and
 * custom actions are not carried out: they become {@link Effect}s.
 */
export class MachineInterpreter {
  readonly root: XStateActor;
  readonly effects: Effect[] = [];
  /**
   * The machine and its child actors, each with its record. One map of records takes less memory than a map or a set for each member of the record.
   */
  readonly #steps = new Map<XStateActor, ActorStep>();
  #events = 0;
  #microsteps = 0;

  /**
   * Creates the actors from an input or from a stored snapshot.
   * @throws XState's error if the machine no longer has the stored state, or if its initial state cannot be computed
   */
  constructor(roots: RootActorFactory, start: MachineStart) {
    this.root = roots.create(start, (root) => {
      this.#register(root);
      // XState sends an inspection event for each new actor, just before the actor computes its initial state, and after each microstep.
      // This function replaces XState's own, because an observer would get a copy of each event.
      root.system._sendInspectionEvent = ({ type, actorRef }) => {
        if (type === "@xstate.actor") this.#register(actorRef);
        else if (type === "@xstate.microstep" && ++this.#microsteps > MAX_EVENTS_PER_STEP)
          throw new RangeError(
            `The machine does not come to rest: it made ${MAX_EVENTS_PER_STEP} transitions in one step`,
          );
      };
    });
    if (this.root._snapshot.status === "error") throw this.root._snapshot.error;
    if ("snapshot" in start) {
      this.#adopt(this.root, start.snapshot);
      for (const { at, path, to } of nonChildReferencesOf(start.snapshot)) {
        const [holder, actor] = [this.#find(at), this.#find(to)];
        if (holder !== undefined && actor !== undefined) putReference(holder._snapshot.context, path, actor);
      }
    } else this.#start(this.root);
  }

  #find(address: Address): XStateActor | undefined {
    let actor: XStateActor | undefined = this.root;
    for (const id of address) {
      const children: Snapshot["children"] = actor?._snapshot.children ?? {};
      actor = Object.hasOwn(children, id) ? children[id] : undefined;
    }
    return actor;
  }

  /** The references in contexts that XState does not restore, because they are not to children of the actor that has them. */
  nonChildReferences(): readonly NonChildReference[] {
    return [...this.#steps.keys()].flatMap((holder) => {
      const at = addressOf(holder);
      if (kindOfActor(holder.logic) === "promise" || this.#find(at) !== holder) return [];
      return actorsIn(holder._snapshot.context).flatMap(({ path, actor }) => {
        const to = addressOf(actor);
        return actor._parent !== holder && this.#find(to) === actor ? [{ at, path, to }] : [];
      });
    });
  }

  /**
   * Delivers an event to the actor at the address `message.to`, or ends a promise actor with its result. Does nothing if there is no such
   * actor. An actor that has ended processes no events.
   */
  deliver(message: AddressedEvent): void {
    const actor = this.#find(message.to);
    if (actor === undefined) return;
    if ("event" in message) return this.#send(actor, message.event);
    const { result } = message;
    actor._snapshot = {
      ...actor._snapshot,
      ...("error" in result
        ? { status: "error", error: fromStoredThrown(result.error) }
        : { status: "done", ...result }),
    };
    this.#end(actor);
  }

  /** The promise actors that have not ended, at any depth. */
  promises(): readonly PromiseStart[] {
    return [...this.#steps.keys()].flatMap((actor) => {
      const { status, input } = actor._snapshot as Snapshot & { readonly input?: unknown };
      if (kindOfActor(actor.logic) !== "promise" || status !== "active") return [];
      return [{ ...identityOf(actor), input: toStorableWithErrors(input ?? null, "input") }];
    });
  }

  /** Adds the record of a new actor, and makes XState put the actor's actions there instead of executing them. */
  #register(actor: XStateActor): void {
    if (actor.id === FORBIDDEN_ACTOR_ID)
      throw new TypeError(
        `An actor is spawned with the id "${actor.id}", which JavaScript reserves: name it otherwise`,
      );
    const actions: Action[] = [];
    this.#steps.set(actor, {
      actions,
      queue: [],
      isStarted: false,
      isStopped: false,
      isRestored: false,
      isChanged: false,
    });
    const nothing = () => undefined;
    Object.assign(actor._actorScope, {
      actionExecutor: (action: Action) => {
        const { type, params, exec, info } = action;
        if (type === "xstate.stopChild" && isActor(params)) {
          // Frees the actor's system id at once, because an actor that is spawned later in this step may use the same id.
          exec?.(info, params);
          const step = this.#steps.get(params);
          if (step?.isStarted === false) step.isStopped = true;
        }
        actions.push(action);
      },
      defer: nothing,
      stopChild: nothing,
      emit: (event: unknown) => this.effects.push({ kind: "emit", from: addressOf(actor), event }),
    });
  }

  /**
   * Marks a restored actor and its children as started, because an earlier step started them.
   * @throws an error if an active stored child has no logic any more, or if restoring a child has failed
   */
  #adopt(actor: XStateActor, stored: JsonObject): void {
    const step = this.#stepOf(actor);
    step.isStarted = true;
    step.isRestored = true;
    step.queue = undefined;
    const { children } = stored;
    for (const [id, child] of Object.entries(isObject(children) ? children : {})) {
      const { snapshot, src } = child as { readonly snapshot: JsonObject; readonly src: string };
      const restored = actor._snapshot.children?.[id];
      if (restored === undefined) {
        if (snapshot["status"] === "active") throw new Error(`There is no actor "${src}" any more`);
        continue;
      }
      const { status, error } = restored._snapshot;
      if (status === "error" && snapshot["status"] !== "error") throw error;
      this.#adopt(restored, snapshot);
    }
  }

  #start(actor: XStateActor): void {
    const step = this.#stepOf(actor);
    if (step.isStarted || step.isStopped) return;
    step.isStarted = true;
    const { src } = actor;
    const kind = kindOfActor(actor.logic);
    if (kind === "callback or observable" || (actor !== this.root && typeof src !== "string")) {
      const what = typeof src === "string" ? kind : "inline";
      throw new TypeError(
        `The actor "${actor.id}" is spawned of ${what} logic: only promises, machines and transition functions with a name are supported`,
      );
    }
    const tasks = step.queue ?? [];
    tasks.unshift(() => {
      if (kind === "promise") {
        const input = promiseInput(actor.options.input, actor.id);
        this.effects.push({ kind: "start", ...identityOf(actor), input });
      }
      this.#settle(actor);
    });
    this.#run(step, tasks);
  }

  #send(actor: XStateActor, event: MachineEvent): void {
    this.#inTurn(actor, () => {
      const { logic, _snapshot: before, _actorScope: scope } = actor;
      const isActive = before.status === "active" && !this.#stepOf(actor).isStopped;
      if (!isActive || kindOfActor(logic) === "promise") return;
      if (++this.#events > MAX_EVENTS_PER_STEP)
        throw new RangeError(`The machine does not come to rest: it took ${MAX_EVENTS_PER_STEP} events`);
      try {
        actor._snapshot = logic.transition(before, event, scope);
      } catch (error) {
        if (actor === this.root) throw error;
        this.#stepOf(actor).actions.length = 0;
        actor._snapshot = { ...before, status: "error", error };
      }
      this.#settle(actor);
    });
  }

  /** Runs a task of an actor, or queues it while the actor is busy: an actor processes one event at a time. */
  #inTurn(actor: XStateActor, task: () => void): void {
    const step = this.#stepOf(actor);
    if (step.queue === undefined) this.#run(step, [task]);
    else step.queue.push(task);
  }

  #run(step: ActorStep, tasks: (() => void)[]): void {
    step.queue = tasks;
    for (let next = tasks.shift(); next !== undefined; next = tasks.shift()) next();
    step.queue = undefined;
  }

  #stepOf(actor: XStateActor): ActorStep {
    const step = this.#steps.get(actor);
    if (step === undefined) throw new Error(`The actor "${actor.id}" does not belong to this machine`);
    return step;
  }

  /**
   * Carries out the actions of an actor's last transition. Then notifies the parent, if the actor has ended or the parent has subscribed to
   * its snapshots.
   */
  #settle(actor: XStateActor): void {
    this.#noteChild(actor);
    const step = this.#stepOf(actor);
    const actions = step.actions.splice(0);
    let spawned: Set<XStateActor | undefined> | undefined;
    // Starts the children that `assign` has spawned, because XState returns no action for them.
    for (const child of Object.values(actor._snapshot.children ?? {})) {
      if (child === undefined || this.#stepOf(child).isStarted) continue;
      spawned ??= new Set(actions.map(({ params }) => (params as ActionParams | undefined)?.actorRef));
      if (!spawned.has(child)) this.#start(child);
    }
    for (const action of actions) this.#perform(actor, action);
    const { _snapshot: snapshot, _parent: parent, id } = actor;
    if (parent === undefined || step.isStopped) return;
    if (snapshot.status !== "active") this.#end(actor);
    else if (actor._syncSnapshot === true) this.#send(parent, { type: `xstate.snapshot.${id}`, snapshot });
  }

  /** Adds the effect `child` for a child machine, at its first change in this step. */
  #noteChild(actor: XStateActor): void {
    const { logic, src } = actor;
    if (actor === this.root || !isMachine(logic)) return;
    const step = this.#stepOf(actor);
    if (step.isChanged) return;
    step.isChanged = true;
    const read = (): ChildState => {
      const { value, context, output } = logic.getPersistedSnapshot(actor._snapshot) as Pick<
        ChildState,
        "value" | "context" | "output"
      >;
      const state = { value, context, output: output ?? null, status: this.#statusOf(actor) };
      return toStorableWithErrors(state, "snapshot") as unknown as ChildState;
    };
    const begins = !step.isRestored;
    const hasEnded = () => this.#statusOf(actor).status !== "active";
    this.effects.push({ kind: "child", at: addressOf(actor), src: String(src), begins, read, hasEnded });
  }

  #statusOf(actor: XStateActor): ChildMachineStatus {
    const { status, error } = actor._snapshot;
    if (status === "error") return { status, error: toPlainError(error) };
    if (status === "done") return { status };
    return { status: this.#stepOf(actor).isStopped ? "stopped" : "active" };
  }

  /** Stops what belongs to an actor that has ended, and sends the parent the actor's output or error. */
  #end(actor: XStateActor): void {
    const { _snapshot: snapshot, _parent: parent, id } = actor;
    const { output, error } = snapshot;
    // The effect `stop` also drops the actor's timers, so no effect `cancel` is needed for them.
    this.effects.push({ kind: "stop", at: addressOf(actor) });
    if (snapshot.status === "error") actor._snapshot = { ...snapshot, error: toPlainError(error) };
    if (parent === undefined) return;
    if (snapshot.status === "done")
      this.#send(parent, { type: `xstate.done.actor.${id}`, output, actorId: id });
    else this.#send(parent, { type: `xstate.error.actor.${id}`, error, actorId: id });
  }

  /** Stops an actor and its descendants, because its parent has stopped it. */
  #stop(actor: XStateActor): void {
    const { isStarted = false, isStopped = false } = this.#steps.get(actor) ?? {};
    if (!isStarted || isStopped) return;
    const stop = (one: XStateActor) => {
      const step = this.#stepOf(one);
      // The state of a child that has ended was noted when the child ended.
      if (step.isStarted && one._snapshot.status === "active") this.#noteChild(one);
      step.isStopped = true;
      for (const child of Object.values(one._snapshot.children ?? {})) if (child !== undefined) stop(child);
    };
    stop(actor);
    this.effects.push({ kind: "stop", at: addressOf(actor) });
  }

  /** Carries out one action of an actor, or adds the effect for it. */
  #perform(actor: XStateActor, { type, params: given, info, exec }: Action): void {
    const params = (given ?? {}) as ActionParams;
    const { event, delay } = params;
    switch (type) {
      case "xstate.spawnChild":
        if (params.actorRef === undefined) throw new TypeError(`There is no actor "${String(params.src)}"`);
        if (!this.#stepOf(actor).isStopped) this.#start(params.actorRef);
        break;
      case "xstate.stopChild":
        if (isActor(given)) this.#stop(given);
        break;
      case "xstate.raise":
      case "xstate.sendTo": {
        const target = type === "xstate.raise" ? actor : params.to;
        // The target may be an actor outside this machine, which cannot be reached.
        if (event === undefined || target === undefined || !this.#steps.has(target)) break;
        if (typeof delay === "number") {
          if (this.#stepOf(actor).isStopped) break;
          const [from, to] = [addressOf(actor), addressOf(target)];
          const stored = toStorableWithErrors(event, "event") as MachineEvent;
          this.effects.push({ kind: "timer", from, to, id: params.id, delay, event: stored });
        } else if (type === "xstate.sendTo") this.#send(target, event);
        // An event raised without a delay needs no action, because the transition function has already processed it.
        break;
      }
      case "xstate.cancel":
        if (params.sendId !== undefined && !this.#stepOf(actor).isStopped)
          this.effects.push({ kind: "cancel", from: addressOf(actor), id: params.sendId });
        break;
      case "xstate.emit":
        this.effects.push({ kind: "emit", from: addressOf(actor), event });
        break;
      case "xstate.log":
        this.effects.push({ kind: "log", label: params.label, value: params.value });
        break;
      default:
        if (exec !== undefined) this.effects.push({ kind: "action", run: () => exec(info, given) });
    }
  }
}

interface ActionParams {
  readonly id?: string;
  readonly src?: unknown;
  readonly actorRef?: XStateActor;
  readonly event?: MachineEvent;
  readonly to?: XStateActor;
  readonly sendId?: string;
  readonly delay?: unknown;
  readonly value?: unknown;
  readonly label?: string;
}

/**
 * The input of a promise actor, for storage.
 * @throws TypeError if it contains an actor: the promise runs outside the step, and again after a restart, where it cannot reach actors
 */
export function promiseInput(input: unknown, id: string): unknown {
  const [found] = actorsIn(input);
  if (found !== undefined)
    throw new TypeError(
      `The input of the promise actor "${id}" has an actor at ${["input", ...found.path].join(".")}: a promise gets JSON data alone, and answers by its result`,
    );
  return toStorableWithErrors(input ?? null, "input");
}

/** The ancestors of an actor, the root first. */
function ancestorsOf({ _parent: parent }: XStateActor): readonly XStateActor[] {
  return parent === undefined ? [] : [...ancestorsOf(parent), parent];
}

const addressOf = (actor: XStateActor): Address =>
  [...ancestorsOf(actor), actor].slice(1).map(({ id }) => id);

/** The address of an actor, and the names that lead to its logic. */
const identityOf = (actor: XStateActor): Omit<PromiseStart, "input"> => ({
  at: addressOf(actor),
  owner: ancestorsOf(actor)
    .slice(1)
    .map(({ src }) => String(src)),
  src: String(actor.src),
});
