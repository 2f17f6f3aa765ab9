import type { JsonRecord } from "../api/records.ts";
import { differingMembers } from "../assistants/differing-members.ts";

/**
 * Checks that saving a form overwrites no change that somebody else has made since the form was opened.
 * @param before the values when the form was opened
 * @param now the stored values
 * @param sent the values to save
 * @throws Error naming the members of `sent` that somebody else has changed to another value
 */
export function assertNotOverwriting(before: JsonRecord, now: JsonRecord, sent: JsonRecord): void {
  // In both directions, so that members that were added or deleted count too.
  const changed = new Set([...differingMembers(before, now), ...differingMembers(now, before)]);
  const names = differingMembers(now, sent).filter((name) => changed.has(name));
  if (names.length === 0) return;
  throw new Error(
    `Somebody else has changed ${names.map((name) => `“${name}”`).join(", ")} while you were editing. Copy your changes, and open the form again.`,
  );
}
