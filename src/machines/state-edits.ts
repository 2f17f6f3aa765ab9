import { isObject, type JsonObject } from "../model/json.ts";
import { hasActorReference, hasChildId, REFERENCE_FAULT } from "./stored-actor-references.ts";
import type { Address } from "./machine-driver.ts";
import {
  EVENTS_KEY,
  isPendingEvent,
  isStartedPromiseActor,
  SNAPSHOT_KEY,
  STATE_KEY,
} from "./machine-state.ts";
import { type MachineVersions, versionOfState } from "./machine-versions.ts";

/**
 * The most events and results that may wait in a state after a client has written some there. The machine takes all of them in one step,
 * and nothing else goes on in the process meanwhile.
 */
const MAX_WRITTEN_EVENTS = 1_000;

/**
 * The fault of a client's write to the state; undefined if there is none. {@link EVENTS_KEY} and {@link STATE_KEY} are checked, because
 * the machine could not continue from a wrong value there, and references to actors, which must be those of the state. `values` returns the
 * state with the write.
 */
export function writeFault(versions: MachineVersions, write: JsonObject, values: () => JsonObject) {
  const events = write[EVENTS_KEY];
  if (events !== undefined && !(Array.isArray(events) && events.every(isPendingEvent)))
    return {
      key: EVENTS_KEY,
      message:
        "must be a list of { event }, of { timer }, or of { actor, start, result } with the output or the error of an actor",
    };
  if (events !== undefined && events.length > 0) {
    const all = values()[EVENTS_KEY];
    if (Array.isArray(all) && all.length > MAX_WRITTEN_EVENTS)
      return { key: EVENTS_KEY, message: `must hold at most ${MAX_WRITTEN_EVENTS} events in all` };
  }
  for (const key of Object.keys(write)) {
    // A state that is copied back as it was has references of child machines to their own actors here.
    if (key === SNAPSHOT_KEY) continue;
    if (hasActorReference(write[key], (id) => isActorOf(values(), id)))
      return { key, message: REFERENCE_FAULT.value };
  }
  if (!Object.hasOwn(write, STATE_KEY)) return undefined;
  const faults = versions.driversFor(values()).map((driver) => driver.whyNotState(write[STATE_KEY]));
  // If the graph does not have the version of the state, there is no driver to check the value. The state is then migrated, or refused,
  // when the next run starts.
  const message = faults.includes(undefined) ? undefined : faults.at(-1);
  return message === undefined ? undefined : { key: STATE_KEY, message };
}

/** Whether the machine of a state has a child actor with this id. */
function isActorOf(values: JsonObject, id: unknown): boolean {
  const machine = values[SNAPSHOT_KEY];
  const rest = isObject(machine) ? machine["rest"] : undefined;
  return isObject(rest) && hasChildId(rest)(id);
}

/**
 * The write that puts the machine into a state, and stops the promise actors of the states that it leaves; undefined if the machine's
 * version has no such state.
 */
export function updateEnteringState(
  versions: MachineVersions,
  name: string,
  values: JsonObject,
): JsonObject | undefined {
  const driver = versions.find(versionOfState(values)) ?? versions.current;
  const entered = driver.enteredState(name, values[STATE_KEY]);
  if (entered === undefined) return undefined;
  const { value, isLeft } = entered;
  const kept = values[SNAPSHOT_KEY];
  const work = isObject(kept) ? kept["work"] : undefined;
  if (!isObject(kept) || !isObject(kept["rest"]) || !Array.isArray(work)) return { [STATE_KEY]: value };
  const isStopped = ({ at }: { readonly at: Address }) => at.length === 1 && isLeft(at[0] as string);
  const stopped = work.filter(isStartedPromiseActor).filter(isStopped);
  if (stopped.length === 0) return { [STATE_KEY]: value };
  const ids = new Set(stopped.map(({ at }) => at[0]));
  const { children } = kept["rest"];
  const left = Object.entries(isObject(children) ? children : {}).filter(([id]) => !ids.has(id));
  const rest = { ...kept["rest"], children: Object.fromEntries(left) };
  return {
    [STATE_KEY]: value,
    [SNAPSHOT_KEY]: { ...kept, rest, work: work.filter((one) => !stopped.includes(one)) },
  };
}
