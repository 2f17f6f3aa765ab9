import { isObject, type JsonObject } from "../model/json.ts";
import type { Address } from "./machine-driver.ts";
import type { XStateActor } from "./xstate-types.ts";

/**
 * A reference in an actor's context to an actor that is not one of its children, such as its parent. XState restores references to children
 * alone, so the others are stored next to the snapshot.
 */
export interface NonChildReference {
  /** The actor whose context has the reference. */
  readonly at: Address;
  /** The keys that lead to the reference in the context. */
  readonly path: readonly string[];
  /** The actor to which it refers. */
  readonly to: Address;
}

/** The member of a stored snapshot with its {@link NonChildReference}s. Absent if there are none. */
const NON_CHILD_REFERENCES = "references";

export const isActor = (value: unknown): value is XStateActor =>
  typeof value === "object" && value !== null && "_actorScope" in value;

/**
 * The actors in a value, each with the keys that lead to it. An actor in an object that occurs in several places is listed once for each. An
 * object within itself is left out.
 */
export function actorsIn(
  value: unknown,
): readonly { readonly path: readonly string[]; readonly actor: XStateActor }[] {
  const found: { readonly path: readonly string[]; readonly actor: XStateActor }[] = [];
  /** The objects that are being visited, and those in which no actor was found. */
  const skipped = new Set<object>();
  const visit = (one: unknown, path: readonly string[]) => {
    if (typeof one !== "object" || one === null) return;
    if (isActor(one)) found.push({ path, actor: one });
    else if ((Array.isArray(one) || isObject(one)) && !skipped.has(one)) {
      skipped.add(one);
      const before = found.length;
      for (const key of Object.keys(one)) visit((one as JsonObject)[key], [...path, key]);
      if (found.length > before) skipped.delete(one);
    }
  };
  visit(value, []);
  return found;
}

/** A stored snapshot with the references to actors that XState does not restore. */
export const withNonChildReferences = (
  rest: JsonObject,
  references: readonly NonChildReference[],
): JsonObject => (references.length === 0 ? rest : { ...rest, [NON_CHILD_REFERENCES]: references });

/** The {@link NonChildReference}s of a stored snapshot. Malformed ones are left out, because a client may have edited the state. */
export function nonChildReferencesOf(rest: JsonObject): readonly NonChildReference[] {
  const stored = rest[NON_CHILD_REFERENCES];
  return Array.isArray(stored) ? stored.filter(isNonChildReference) : [];
}

const isNonChildReference = (value: unknown): value is NonChildReference =>
  isObject(value) && [value["at"], value["path"], value["to"]].every(isListOfNames);

const isListOfNames = (value: unknown): boolean =>
  Array.isArray(value) && value.every((one) => typeof one === "string" && one !== "__proto__");

/** Puts an actor into a context, unless something else is there now. */
export function putReference(context: unknown, path: readonly string[], actor: XStateActor): void {
  let inner: unknown = context;
  for (const key of path.slice(0, -1))
    inner = isMember(inner, key) ? (inner as Record<string, unknown>)[key] : undefined;
  const last = path.at(-1);
  if (last === undefined || !isMember(inner, last)) return;
  const members = inner as Record<string, unknown>;
  if (members[last] === undefined || isActor(members[last])) members[last] = actor;
}

const isMember = (value: unknown, key: string): boolean =>
  typeof value === "object" && value !== null && Object.hasOwn(value, key);
