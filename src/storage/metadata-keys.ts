import { md5Hex } from "../model/ids.ts";
import { MAX_INDEXED_LENGTH } from "../model/thread-search.ts";

/**
 * The index key of a metadata member: short, and practically unique. Undefined for a value that is not indexed: an object, a list, or a
 * text that is too long to be searched for.
 */
export function memberKey(name: string, value: unknown): string | undefined {
  if (value === undefined || (typeof value === "object" && value !== null)) return undefined;
  if (name.length + (typeof value === "string" ? value.length : 0) > MAX_INDEXED_LENGTH) return undefined;
  return md5Hex(JSON.stringify([name, value])).slice(0, 16);
}

/** The number of cached keys. It is limited, because keys come from clients. */
const MAX_CACHED_KEYS = 256;
/** Characters of a cached name or value. */
const LONGEST_KNOWN = 128;

/** A cache of metadata index keys: nearly every thread has the members of its graph and its assistant. */
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
