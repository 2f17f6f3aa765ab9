import type { JsonRecord } from "../api/records.ts";

/**
 * Returns the members of an edited metadata object that are new or changed. Only these are sent, because somebody else
 * may change other members at the same time.
 * @throws Error if a member of `before` is missing in `after`: the API adds and replaces members, but cannot delete
 * them
 */
export function changedMetadata(before: JsonRecord, after: JsonRecord): JsonRecord {
  const deleted = Object.keys(before).filter((name) => !Object.hasOwn(after, name));
  if (deleted.length > 0) {
    const names = deleted.map((name) => `“${name}”`).join(", ");
    const them = deleted.length === 1 ? "it" : "them";
    throw new Error(
      `${names} cannot be deleted: the API only adds and replaces metadata fields. Set ${them} to null instead.`,
    );
  }
  const changed = Object.entries(after).filter(
    ([name, value]) => JSON.stringify(value) !== JSON.stringify(before[name]),
  );
  return Object.fromEntries(changed);
}
