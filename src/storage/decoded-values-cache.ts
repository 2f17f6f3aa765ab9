import type { JsonObject } from "../model/json.ts";
import { WeakCache } from "../model/weak-cache.ts";
import { checksumOf } from "./envelope.ts";

/** Bytes of a stored value from which readers share one decoded copy. */
const LARGE = 64 * 1024;

/** Large decoded values, shared by states that are read at the same time: checkpoints of a thread have most of their values in common. */
export class DecodedValues {
  readonly #entries = new WeakCache<{ readonly value: unknown }>();
  /** Ties the lifetime of cache entries to that of the state: a `WeakRef` cannot refer to a string. */
  readonly #byState = new WeakMap<JsonObject, object[]>();

  /** The value of `state` that is stored under `key` in `bytes`. The checksum distinguishes it from values of an earlier thread with the same id. */
  decode(state: JsonObject, key: string, bytes: Buffer, decode: () => unknown): unknown {
    if (bytes.length < LARGE) return decode();
    const name = `${key} ${bytes.length} ${checksumOf(bytes)}`;
    let entry = this.#entries.get(name);
    if (entry === undefined) this.#entries.set(name, (entry = { value: decode() }));
    const others = this.#byState.get(state);
    if (others === undefined) this.#byState.set(state, [entry]);
    else others.push(entry);
    return entry.value;
  }
}
