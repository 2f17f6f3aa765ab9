import type { ChangedChildMachine } from "../graph/definition.ts";
import { isObject, type JsonObject } from "../model/json.ts";
import type { ChildMachineStatus } from "../model/machine-child.ts";
import { type Address, type ChildState, isWithin } from "./machine-driver.ts";
import { actorNode, WAIT_NODE } from "./machine-node-names.ts";
import {
  OUTPUT_KEY,
  SNAPSHOT_KEY,
  STATE_KEY,
  type StoredChild,
  type StoredMachine,
} from "./machine-state.ts";

/** The child machines that have not ended, at all levels, by {@link addressKey}. It is a map because a machine may have thousands. */
export type ChildrenByAddress = Map<string, StoredChild>;

export const addressKey = (at: Address): string => JSON.stringify(at);

/**
 * The checkpoint namespace of an actor: its own if the actor is a machine, otherwise that of the machine that has started it. Empty for the
 * root machine.
 */
export function namespaceOfActor(children: ChildrenByAddress, at: Address): string {
  if (at.length === 0) return "";
  return children.get(addressKey(at))?.ns ?? namespaceOfActor(children, at.slice(0, -1));
}

/**
 * Converts a change of a child machine to its stored form. The child's state is stored only if the child has ended: before that, the
 * parent's snapshot contains it.
 */
export function storedChange(
  { read, ...child }: StoredChild & { read(): ChildState },
  children: ChildrenByAddress,
) {
  return children.get(addressKey(child.at))?.start === child.start ? child : { ...child, state: read() };
}

const ACTIVE: ChildMachineStatus = Object.freeze({ status: "active" });
export const STOPPED: ChildMachineStatus = Object.freeze({ status: "stopped" });

/** The child machines that have changed in a step, with their states in the form in which their namespaces show them. */
export function changedChildren(update: JsonObject | null): readonly ChangedChildMachine[] {
  const { changed, rest, work = [] } = (update?.[SNAPSHOT_KEY] ?? {}) as Partial<StoredMachine>;
  return (changed ?? []).flatMap(({ start, parent, at, ns = "", state }) => {
    const shown = state ?? activeChildState(rest, at);
    if (shown === undefined) return [];
    const { value: stateValue, context, output, status = state === undefined ? ACTIVE : STOPPED } = shown;
    const values = { ...context, [STATE_KEY]: stateValue, [OUTPUT_KEY]: output ?? null };
    const own = work.filter((one) => isSameActorAddress(one.at.slice(0, -1), at));
    const nodes = own.map((one) => ({ name: actorNode(one.src), start: one.start }));
    const next = state !== undefined ? [] : nodes.length > 0 ? nodes : [{ name: WAIT_NODE, start: null }];
    return [{ start, parent, ns, values, next, status }];
  });
}

/** The state of a child machine, from `rest` of the root machine's snapshot. Undefined if the child has ended. */
export function activeChildState(rest: JsonObject | undefined, at: Address): ChildState | undefined {
  let snapshot: unknown = rest;
  for (const id of at) {
    const { children } = isObject(snapshot) ? snapshot : {};
    const child = isObject(children) ? children[id] : undefined;
    snapshot = isObject(child) ? child["snapshot"] : undefined;
  }
  if (!isObject(snapshot)) return undefined;
  const { value: stateValue, context, output = null } = snapshot;
  return { value: stateValue, context: context as JsonObject, output };
}

export const isSameActorAddress = (one: Address, other: Address) =>
  one.length === other.length && isWithin(one, other);
