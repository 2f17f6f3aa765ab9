import { isMachine, type Machine } from "./xstate.ts";

export type LogicKind = "promise" | "machine" | "transition" | "callback or observable" | "missing";

interface Logic {
  readonly start?: unknown;
  transition(snapshot: object, event: object, scope: object): { readonly status?: unknown } | undefined;
}

/** The kind of an actor's logic. XState does not mark it, so it is inferred from the members of the logic. */
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

/** The logic that `src` refers to: an implementation of the machine, or logic that is written in an `invoke` itself. */
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
