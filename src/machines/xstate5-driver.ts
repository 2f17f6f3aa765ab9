import { toPlainError } from "../model/errors.ts";
import { md5Hex } from "../model/ids.ts";
import { isObject, type JsonObject, toStorable } from "../model/json.ts";
import type {
  ActorResult,
  Effect,
  MachineDriver,
  MachineEvent,
  StoredSnapshot,
  Taken,
} from "./machine-driver.ts";
import { kindOfActor, logicOf } from "./actor-kinds.ts";
import type { Action, XStateActor, Machine, Snapshot, XStateLibrary } from "./xstate.ts";

/** The driver of machines written for XState 5, over its pure functions. */
export function xstate5Driver(xstate: XStateLibrary, machine: Machine): MachineDriver {
  const restore = ({ value, context, rest }: StoredSnapshot): Snapshot => {
    // A copy: XState puts its references to actors into the context.
    const snapshot = structuredClone({ ...rest, value, context });
    // A machine whose state no longer exists, or whose child does not, is restored with the status "error".
    const restored = xstate.createActor(machine, { snapshot }).getSnapshot();
    if (restored.status === "error") throw restored.error;
    return restored;
  };
  const taken = ([snapshot, actions]: readonly [Snapshot, readonly Action[]]): Taken => {
    const { status, output } = snapshot;
    if (status === "error") throw snapshot.error;
    return {
      snapshot: persisted(machine, snapshot),
      status: status === "active" ? "active" : "done",
      output: toStorable(output ?? null, "output"),
      effects: actions.flatMap((action) => effectOf(machine, action) ?? []),
    };
  };
  return {
    hash: md5Hex(JSON.stringify(machine.definition, describeFunction)),
    version: machine.version ?? null,
    begin: (input) => taken(xstate.initialTransition(machine, input)),
    take: (stored, event) => taken(xstate.transition(machine, restore(stored), event)),
    waiting(stored) {
      const snapshot = restore(stored);
      // oxlint-disable-next-line no-underscore-dangle -- XState's name for the active states
      const types = snapshot._nodes.flatMap(({ ownEvents }) => ownEvents);
      const events = [...new Set(types)].filter((type) => type !== "" && !type.startsWith("xstate."));
      const meta = toStorable(snapshot.getMeta(), "meta") as JsonObject;
      return { tags: [...snapshot.tags], meta, events, can: (event) => snapshot.can(event) };
    },
    resultEvent: (id, result) =>
      "error" in result
        ? { type: `xstate.error.actor.${id}`, error: toError(result.error), actorId: id }
        : { type: `xstate.done.actor.${id}`, output: result.output, actorId: id },
    withResult(stored, id, result) {
      const { children } = stored.rest;
      const child = isObject(children) ? children[id] : undefined;
      if (!isObject(child) || !isObject(children)) return stored;
      const snapshot = "error" in result ? { status: "error", ...result } : { status: "done", ...result };
      return { ...stored, rest: { ...stored.rest, children: { ...children, [id]: { ...child, snapshot } } } };
    },
    startActor(src, id, input, emit) {
      const actor = xstate.createActor(logicOf(machine, src), { id, input });
      const result = new Promise<ActorResult>((resolve) => {
        actor.subscribe({
          complete: () => resolve({ output: actor.getSnapshot().output }),
          error: (error) => resolve({ error }),
        });
      });
      actor.on("*", emit);
      actor.start();
      return { result, stop: () => void actor.stop() };
    },
  };
}

/** Guards and actions that are functions count by their names in the hash. */
const describeFunction = (_: string, value: unknown): unknown =>
  typeof value === "function" ? value.name : value;

function persisted(machine: Machine, snapshot: Snapshot): StoredSnapshot {
  const { value, context, ...rest } = machine.getPersistedSnapshot(snapshot) as Snapshot & object;
  return {
    value: toStorable(value, "state"),
    context: toStorable(context, "context") as JsonObject,
    rest: toStorable({ ...rest }, "snapshot") as JsonObject,
  };
}

interface ActionParams {
  readonly id?: string;
  readonly src?: unknown;
  readonly input?: unknown;
  readonly actorRef?: XStateActor;
  readonly event?: MachineEvent;
  readonly to?: unknown;
  readonly sendId?: string;
  readonly delay?: unknown;
  readonly value?: unknown;
  readonly label?: string;
}

function effectOf(machine: Machine, action: Action): Effect | undefined {
  const { type, info, exec } = action;
  const params = (action.params ?? {}) as ActionParams;
  switch (type) {
    case "xstate.spawnChild": {
      const { actorRef, src, input } = params;
      if (actorRef === undefined) throw new TypeError(`There is no actor "${String(src)}"`);
      const kind = typeof src === "string" ? kindOfActor(logicOf(machine, src)) : "inline";
      if (kind !== "promise")
        throw new TypeError(
          `The actor "${actorRef.id}" is spawned of ${kind} logic: only promise actors are supported`,
        );
      return {
        kind: "start",
        id: actorRef.id,
        src: src as string,
        input: toStorable(input ?? null, "input"),
      };
    }
    case "xstate.stopChild":
      return action.params === undefined
        ? undefined
        : { kind: "stop", id: (action.params as XStateActor).id };
    case "xstate.raise":
    case "xstate.sendTo": {
      // A promise actor takes no events, and nobody is above the root.
      if (params.event === undefined || (type === "xstate.sendTo" && params.to !== info.self))
        return undefined;
      const event = toStorable(params.event, "event") as MachineEvent;
      const { id, delay } = params;
      if (typeof delay === "number") return { kind: "timer", id, delay, event };
      // An event that was raised without a delay is taken already.
      return type === "xstate.raise" ? undefined : { kind: "send", event };
    }
    case "xstate.cancel":
      return params.sendId === undefined ? undefined : { kind: "cancel", id: params.sendId };
    case "xstate.emit":
      return { kind: "emit", event: params.event };
    case "xstate.log":
      return { kind: "log", label: params.label, value: params.value };
    default:
      return exec === undefined ? undefined : { kind: "action", run: () => exec(info, action.params) };
  }
}

/** Restores the Error that the machine expects: a stored error is plain data. */
function toError(stored: unknown): Error {
  const { error: name, message } = isObject(stored)
    ? (stored as { error?: string; message?: string })
    : toPlainError(stored);
  return Object.assign(new Error(message), { name: name ?? "Error" });
}
