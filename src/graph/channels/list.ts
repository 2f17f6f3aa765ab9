import type { FieldError } from "../../model/errors.ts";
import { toStorable } from "../../model/json.ts";
import type { Channel } from "../channel.ts";
import { throwInvalidField } from "../parse-state-fields.ts";

/** A key with a list. The items that nodes return are appended, in the order of the tasks. */
export function list<V>(): Channel<readonly V[], readonly V[]> {
  return {
    "~channel": {},
    kind: "list",
    life: "kept",
    initial: Object.freeze([]),
    check: checkList,
    describe: () => ({ type: "array" }),
    read(write, at) {
      if (!Array.isArray(write)) throwInvalidField(at, "must be an array: its items are appended");
      return toStorable(write, at);
    },
    update: (current, writes) => appendItems(current, writes as readonly (readonly unknown[])[]),
  };
}

/** The `check` of a list: a stored value must be an array. */
export function checkList(stored: unknown, at: string): readonly FieldError[] {
  return Array.isArray(stored) ? [] : [{ at, message: "must be an array" }];
}

/** Makes a new list with the items at its end. The old list is not changed; both share their items. */
function appendItems(current: unknown, writes: readonly (readonly unknown[])[]) {
  const old: readonly unknown[] = Array.isArray(current) ? current : [];
  const items = writes.length === 1 ? (writes[0] ?? []) : writes.flat();
  if (items.length === 0) return undefined;
  return {
    // Uses spread, because copying a frozen array with `concat` takes five times as long.
    value: Object.freeze([...old, ...items]),
    change: { kind: "append", keep: old.length, items } as const,
  };
}
