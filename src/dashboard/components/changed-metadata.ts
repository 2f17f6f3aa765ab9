import type { JsonRecord } from "../api/records.ts";
import { differingMembers } from "../assistants/differing-members.ts";

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

/**
 * Checks that saving a form overwrites no change that somebody else has made since the form was opened.
 * @param before the values when the form was opened
 * @param now the stored values
 * @param sent the values to save
 * @throws Error naming the members of `sent` that somebody else has changed to another value
 */
export function assertNotOverwriting(before: JsonRecord, now: JsonRecord, sent: JsonRecord): void {
  const own = new Set(differingMembers(now, sent));
  const names = Object.keys(sent).filter(
    (name) => own.has(name) && JSON.stringify(ownValue(now, name)) !== JSON.stringify(ownValue(before, name)),
  );
  if (names.length === 0) return;
  throw new Error(
    `Somebody else has changed ${names.map((name) => `“${name}”`).join(", ")} while you were editing. Copy your changes, and open the form again.`,
  );
}

/** Returns the value of a member; undefined if there is none. Members may have names such as `constructor`. */
const ownValue = (record: JsonRecord, name: string): unknown =>
  Object.hasOwn(record, name) ? record[name] : undefined;
