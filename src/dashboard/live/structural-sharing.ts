import { isJsonRecord, type JsonRecord } from "../api/records.ts";

/**
 * Lets successive states of a thread share equal messages in memory. The state is read again after each run and
 * contains the whole conversation, so several copies of a long conversation would take several times its memory.
 */
export class SharedMessages {
  #last: JsonRecord = {};

  /**
   * Returns a state that equals `values` and contains the message objects of the previous result where they are equal.
   * If the whole state is equal, returns the previous result itself.
   */
  share(values: JsonRecord): JsonRecord {
    const last = this.#last;
    const entries = Object.entries(values).map(
      ([name, value]) => [name, sharedList(last[name], value)] as const,
    );
    const isUnchanged =
      Object.keys(last).length === entries.length && entries.every(([name, value]) => last[name] === value);
    if (!isUnchanged) this.#last = Object.fromEntries(entries);
    return this.#last;
  }
}

function sharedList(before: unknown, next: unknown): unknown {
  if (before === next || !Array.isArray(before) || !Array.isArray(next)) return next;
  const newest = new Map<unknown, JsonRecord>();
  const list = next.map((one: unknown, i) => {
    const known: unknown = before[i];
    const kept = isSame(known, one) ? known : isJsonRecord(one) ? withSharedMembers(one, newest) : one;
    if (isJsonRecord(kept)) newest.set(kept["type"], kept);
    return kept;
  });
  return list.length === before.length && list.every((one, i) => one === before[i]) ? before : list;
}

/**
 * Returns a message that shares equal members with the previous message of its type in the list. Most members are
 * equal, because they are empty or name a model.
 */
function withSharedMembers(message: JsonRecord, newest: ReadonlyMap<unknown, JsonRecord>): JsonRecord {
  const like = newest.get(message["type"]);
  if (like === undefined) return message;
  return Object.fromEntries(
    Object.entries(message).map(([name, value]) => [name, isEqual(like[name], value) ? like[name] : value]),
  );
}

const isEqual = (a: unknown, b: unknown): boolean => a === b || JSON.stringify(a) === JSON.stringify(b);

const isSame = (a: unknown, b: unknown): boolean =>
  a === b || (isJsonRecord(a) && isJsonRecord(b) && a["id"] === b["id"] && isEqual(a, b));
