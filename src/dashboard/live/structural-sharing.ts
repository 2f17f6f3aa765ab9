import { isJsonRecord, type JsonRecord } from "../api/records.ts";

/**
 * Lets the states of a thread share the messages that they have in common. A state is read again after each run and
 * contains the whole conversation, so several states of a long one would take several times its memory.
 */
export class SharedMessages {
  #last: JsonRecord = {};

  /**
   * Returns a state that equals `values` and shares messages with the result of the previous call; that
   * result itself, if the two are equal.
   */
  share(values: JsonRecord): JsonRecord {
    const last = this.#last;
    const entries = Object.entries(values).map(
      ([name, value]) => [name, sharedList(last[name], value)] as const,
    );
    const isEqual =
      Object.keys(last).length === entries.length && entries.every(([name, value]) => last[name] === value);
    if (!isEqual) this.#last = Object.fromEntries(entries);
    return this.#last;
  }
}

function sharedList(before: unknown, next: unknown): unknown {
  if (before === next || !Array.isArray(before) || !Array.isArray(next)) return next;
  const list = next.map((one: unknown, i) => (isSame(before[i], one) ? (before[i] as unknown) : one));
  return list.length === before.length && list.every((one, i) => one === before[i]) ? before : list;
}

const isSame = (a: unknown, b: unknown): boolean =>
  a === b ||
  (isJsonRecord(a) && isJsonRecord(b) && a["id"] === b["id"] && JSON.stringify(a) === JSON.stringify(b));
