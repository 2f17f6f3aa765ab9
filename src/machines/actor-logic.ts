import { allStates, isMachine, type Machine } from "./xstate-types.ts";

export type LogicKind = "promise" | "machine" | "transition" | "callback or observable" | "missing";

/** The id that no actor may have: XState stores actors in an object by their ids, and this id would set the object's prototype. */
export const FORBIDDEN_ACTOR_ID = "__proto__";

interface Logic {
  readonly start?: unknown;
  transition(snapshot: object, event: object, scope: object): { readonly status?: unknown } | undefined;
}

/**
 * The kind of an actor's logic; `missing` if the value is no actor logic. XState does not record the kind. Promise logic is recognised by
 * its `transition`, which ends the actor for the event `xstate.promise.resolve`.
 */
export function kindOfActor(logic: unknown): LogicKind {
  if (typeof logic !== "object" || logic === null || !("transition" in logic)) return "missing";
  if (isMachine(logic)) return "machine";
  const { start } = logic as Logic;
  if (typeof start !== "function") return "transition";
  try {
    const event = { type: "xstate.promise.resolve", data: null };
    const after = (logic as Logic).transition({ status: "active" }, event, {});
    return after?.status === "done" ? "promise" : "callback or observable";
  } catch {
    return "callback or observable";
  }
}

/** The `src` of every actor that a machine may invoke, or spawn by name. */
export function sourcesOf(machine: Machine): readonly string[] {
  const invoked = allStates(machine.root).flatMap(({ invoke }) => invoke.map(({ src }) => src));
  return [...new Set([...Object.keys(machine.implementations.actors), ...invoked])];
}

/** A machine, and all machines that it may start, directly or through other machines. Machines may also start each other in a circle. */
export function machinesOf(machine: Machine): readonly Machine[] {
  const found = new Set([machine]);
  // The loop also visits the machines that it adds to the set.
  for (const one of found) {
    for (const logic of sourcesOf(one).map((src) => logicOf(one, src)))
      if (isMachine(logic)) found.add(logic);
  }
  return [...found];
}

/**
 * The logic to which `src` refers: a named implementation of the machine, or logic written inline in an `invoke`. XState names inline logic
 * `xstate.invoke.INDEX.STATE`, where STATE is the id of the state and INDEX the position in its `invoke`. Undefined if there is no such
 * logic.
 */
export function logicOf(machine: Machine, src: string): unknown {
  const [, index, id] = /^xstate\.invoke\.(\d+)\.(.*)$/.exec(src) ?? [];
  if (index === undefined || id === undefined) return machine.implementations.actors[src];
  const node = (
    machine as unknown as { idMap: ReadonlyMap<string, { config: { invoke?: unknown } }> }
  ).idMap.get(id);
  const invoked = node?.config.invoke;
  const list: readonly unknown[] = Array.isArray(invoked) ? invoked : [invoked];
  return (list[Number(index)] as { readonly src?: unknown } | undefined)?.src;
}
