import type { FieldError } from "../../model/errors.ts";
import { toStorable } from "../../model/json.ts";
import type { Channel } from "../channel.ts";
import { refuse } from "../field-access.ts";

/** A list: what a node returns is appended, in the order of the tasks. */
export function list<V>(): Channel<readonly V[], readonly V[]> {
  return {
    "~channel": {},
    kind: "list",
    life: "kept",
    initial: Object.freeze([]),
    check: checkList,
    describe: () => ({ type: "array" }),
    read(write, at) {
      if (!Array.isArray(write)) refuse(at, "must be an array: its items are appended");
      return toStorable(write, at);
    },
    update: (current, writes) => append(current, writes as readonly (readonly unknown[])[]),
  };
}

/** What is wrong with a stored value that is to be a list. */
export function checkList(stored: unknown, at: string): readonly FieldError[] {
  return Array.isArray(stored) ? [] : [{ at, message: "must be an array" }];
}

/** A new list with the items at its end; the old one is untouched, and their items are shared. */
function append(current: unknown, writes: readonly (readonly unknown[])[]) {
  const old: readonly unknown[] = Array.isArray(current) ? current : [];
  const items = writes.length === 1 ? (writes[0] ?? []) : writes.flat();
  if (items.length === 0) return undefined;
  return {
    // Spread, not concat: copying a frozen array by concat takes five times as long.
    value: Object.freeze([...old, ...items]),
    change: { kind: "append", keep: old.length, items } as const,
  };
}
