import { md5Hex } from "../model/ids.ts";
import { MAX_INDEXED_LENGTH } from "../model/thread-search.ts";

/**
 * The index key of a metadata member: a short hash, which is practically unique. Undefined for members that are not indexed: the value is
 * an object or a list, or the name and a text value have more than {@link MAX_INDEXED_LENGTH} characters together.
 */
export function metadataIndexKey(name: string, value: unknown): string | undefined {
  if (value === undefined || (typeof value === "object" && value !== null)) return undefined;
  if (name.length + (typeof value === "string" ? value.length : 0) > MAX_INDEXED_LENGTH) return undefined;
  return md5Hex(JSON.stringify([name, value])).slice(0, 16);
}

/** The maximum number of cached keys. Without a limit, clients could fill the cache with any number of members. */
const MAX_CACHED_KEYS = 256;
/** The maximum length in characters of the name and of the value of a cached member. Members whose value is no text are not cached. */
const MAX_CACHED_LENGTH = 128;

/**
 * A cache of metadata index keys. Nearly every thread has the ids of its graph and its assistant in its metadata, and these ids repeat
 * often.
 */
export class MetadataIndexKeyCache {
  readonly #known = new Map<string, Map<string, string | undefined>>();
  #count = 0;

  of(name: string, value: unknown): string | undefined {
    if (typeof value !== "string" || value.length > MAX_CACHED_LENGTH || name.length > MAX_CACHED_LENGTH) {
      return metadataIndexKey(name, value);
    }
    let values = this.#known.get(name);
    if (values?.has(value)) return values.get(value);
    if (this.#count >= MAX_CACHED_KEYS) {
      this.#known.clear();
      this.#count = 0;
      values = undefined;
    }
    if (values === undefined) this.#known.set(name, (values = new Map()));
    const member = metadataIndexKey(name, value);
    values.set(value, member);
    this.#count++;
    return member;
  }
}
