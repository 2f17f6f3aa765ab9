import { md5Hex } from "../model/ids.ts";
import { MAX_INDEXED_LENGTH } from "../model/thread-search.ts";

/**
 * The index key of a metadata member: a short hash, which is practically unique. Undefined for values that are not indexed: objects, lists, and
 * texts that are too long.
 */
export function memberKey(name: string, value: unknown): string | undefined {
  if (value === undefined || (typeof value === "object" && value !== null)) return undefined;
  if (name.length + (typeof value === "string" ? value.length : 0) > MAX_INDEXED_LENGTH) return undefined;
  return md5Hex(JSON.stringify([name, value])).slice(0, 16);
}

/** The most cached keys. The number is limited, because the members come from clients. */
const MAX_CACHED_KEYS = 256;
/** The most characters of a name or value that is cached. */
const LONGEST_KNOWN = 128;

/** A cache of metadata index keys. Nearly every thread has members with the ids of its graph and its assistant, which repeat often. */
export class MemberKeyCache {
  readonly #known = new Map<string, Map<string, string | undefined>>();
  #count = 0;

  of(name: string, value: unknown): string | undefined {
    if (typeof value !== "string" || value.length > LONGEST_KNOWN || name.length > LONGEST_KNOWN) {
      return memberKey(name, value);
    }
    let values = this.#known.get(name);
    if (values?.has(value)) return values.get(value);
    if (this.#count >= MAX_CACHED_KEYS) {
      this.#known.clear();
      this.#count = 0;
      values = undefined;
    }
    if (values === undefined) this.#known.set(name, (values = new Map()));
    const member = memberKey(name, value);
    values.set(value, member);
    this.#count++;
    return member;
  }
}
