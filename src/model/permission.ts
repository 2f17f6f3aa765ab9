import type { JsonObject } from "./json.ts";

/** Reads a member of a resource by its name; undefined when the resource has none. */
export type ReadMember = (name: string) => unknown;

/** Which resources of one kind a user may reach. */
export interface Permission {
  /**
   * Members, with their values, that the metadata of every permitted resource has: an index can search for them. {@link allows} checks them
   * too.
   */
  readonly members: JsonObject;
  allows(read: ReadMember): boolean;
}

/** Whether a user may reach the resource with this metadata. */
export type Permits = (metadata: JsonObject) => boolean;

/** The permission of a key; undefined: every resource is permitted. */
export function permitsOf(permission: Permission | undefined): Permits | undefined {
  if (permission === undefined) return undefined;
  return (metadata) => permission.allows((name) => memberOf(metadata, name));
}

export const memberOf = (object: JsonObject, name: string): unknown =>
  Object.hasOwn(object, name) ? object[name] : undefined;

/** Both conditions; undefined when there is none. */
export function bothPermit(one: Permits | undefined, other: Permits | undefined): Permits | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return (metadata) => one(metadata) && other(metadata);
}
