import type { JsonObject } from "./json.ts";

/** Reads a member of a resource by its name; undefined when the resource has none. */
export type ReadMember = (name: string) => unknown;

/** Which resources of one kind a user may reach. */
export interface Permission {
  /**
   * Members that the metadata of every permitted resource has, with these values. An index can search for them. {@link allows} checks them too.
   */
  readonly members: JsonObject;
  allows(read: ReadMember): boolean;
}

/** Returns whether a user may reach a resource with this metadata. */
export type Permits = (metadata: JsonObject) => boolean;

/** A permission as a function of a resource's metadata; undefined: every resource is permitted. */
export function permitsOf(permission: Permission | undefined): Permits | undefined {
  if (permission === undefined) return undefined;
  return (metadata) => permission.allows((name) => memberOf(metadata, name));
}

export const memberOf = (object: JsonObject, name: string): unknown =>
  Object.hasOwn(object, name) ? object[name] : undefined;

/** A condition that requires both conditions; undefined when both are undefined. */
export function bothPermit(one: Permits | undefined, other: Permits | undefined): Permits | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return (metadata) => one(metadata) && other(metadata);
}
