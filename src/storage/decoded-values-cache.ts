import type { JsonObject } from "../model/json.ts";
import { WeakCache } from "../model/weak-cache.ts";
import { storedChecksum } from "./checksum-envelope.ts";

/** If a stored value has this many bytes or more, readers share one decoded copy. */
const MIN_SHARED_BYTES = 64 * 1024;

/**
 * A cache of large decoded values. Checkpoints of a thread have most of their values in common, so states that are read at the same time
 * share values.
 */
export class DecodedValuesCache {
  readonly #entries = new WeakCache<{ readonly value: unknown }>();
  /**
   * Keeps the cache entries of a state alive as long as the state. The entries are objects, because a `WeakRef` cannot refer to a string.
   */
  readonly #byState = new WeakMap<JsonObject, object[]>();

  /**
   * Decodes `bytes`, a value of `state` that is stored under `key`, or returns the cached value. The checksum in the name of the cache
   * entry distinguishes the value from one of an earlier, deleted thread with the same id.
   */
  decode(state: JsonObject, key: string, bytes: Buffer, decode: () => unknown): unknown {
    if (bytes.length < MIN_SHARED_BYTES) return decode();
    const name = `${key} ${bytes.length} ${storedChecksum(bytes)}`;
    let entry = this.#entries.get(name);
    if (entry === undefined) this.#entries.set(name, (entry = { value: decode() }));
    const others = this.#byState.get(state);
    if (others === undefined) this.#byState.set(state, [entry]);
    else others.push(entry);
    return entry.value;
  }
}
