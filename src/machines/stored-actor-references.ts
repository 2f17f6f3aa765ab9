import { isObject, type JsonObject } from "../model/json.ts";

/**
 * The name of the member by which XState recognises a stored reference to an actor, `{ xstate$$type: 1, id }`. When XState restores a
 * snapshot, it puts the actor with this id in the place of the reference.
 */
export const REFERENCE_KEY = "xstate$$type";

const RESERVED = `a member "${REFERENCE_KEY}", which XState reserves for references to actors`;
/** What is wrong with a value, or with data, that contains {@link REFERENCE_KEY} and was not made by XState. */
export const REFERENCE_FAULT = { value: `contains ${RESERVED}`, data: `contain ${RESERVED}` };

/**
 * Whether JSON data contain what XState would take for a reference to an actor, at any level. A value with a cycle would be searched
 * without end, so the result of a promise MUST be made storable before. Data of clients and results of actors MUST NOT
 * contain it: they would become an actor of the machine, or be lost. `isKnown` returns true for the ids of actors to which references are
 * allowed.
 */
export function hasActorReference(data: unknown, isKnown: (id: unknown) => boolean = () => false): boolean {
  const open: unknown[] = [data];
  while (open.length > 0) {
    const one = open.pop();
    if (typeof one !== "object" || one === null) continue;
    if (Object.hasOwn(one, REFERENCE_KEY) && !isKnown((one as JsonObject)["id"])) return true;
    // One by one: a list of a client may have more elements than a call can have arguments.
    for (const member of Object.values(one)) open.push(member);
  }
  return false;
}

/** Returns a function that tells whether an id is that of a child of the snapshot. A snapshot may refer to its own children alone. */
export const hasChildId =
  (snapshot: JsonObject) =>
  (id: unknown): boolean => {
    const { children } = snapshot;
    return typeof id === "string" && isObject(children) && Object.hasOwn(children, id);
  };

/**
 * A deep copy of a stored snapshot, for XState, which changes it. References in a context to actors that are not children of its machine
 * become undefined: XState reads `children[id]`, which for an id such as `__proto__` is a member of the prototype of all objects.
 */
export function copyOfSnapshot(snapshot: JsonObject): JsonObject {
  const isKnown = hasChildId(snapshot);
  const copyMember = (name: string, member: unknown): unknown => {
    if (name === "context") return copyOf(member, isKnown);
    if (name !== "children" || !isObject(member)) return copyOf(member);
    return mapMembers(member, (_, child) =>
      isObject(child)
        ? mapMembers(child, (key, value) =>
            key === "snapshot" && isObject(value) ? copyOfSnapshot(value) : copyOf(value),
          )
        : child,
    );
  };
  return mapMembers(snapshot, copyMember);
}

/** A deep copy of storable data. `isKnown`: if given, references to actors with other ids become undefined. */
function copyOf(value: unknown, isKnown?: (id: unknown) => boolean): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((one) => copyOf(one, isKnown));
  if (isKnown !== undefined && REFERENCE_KEY in value && !isKnown((value as JsonObject)["id"]))
    return undefined;
  return mapMembers(value as JsonObject, (_, member) => copyOf(member, isKnown));
}

function mapMembers(object: JsonObject, change: (key: string, member: unknown) => unknown): JsonObject {
  const copy: Record<string, unknown> = {};
  for (const key of Object.keys(object)) {
    const value = change(key, object[key]);
    // An assignment to this name would set the prototype of the copy.
    if (key === "__proto__")
      Object.defineProperty(copy, key, { value, writable: true, enumerable: true, configurable: true });
    else copy[key] = value;
  }
  return copy;
}
