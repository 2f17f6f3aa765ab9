import type { SmallMap } from "../model/small-map.ts";
import type { ThreadHead } from "./thread-heads.ts";
import { andThen, type Eventually } from "../ports/eventually.ts";
import type { KeyValueStore, WriteOperation } from "../ports/key-value-store.ts";
import { encodeWithChecksum, decodeWithChecksum } from "./checksum-envelope.ts";

/**
 * The operations of one append, while they are being collected. The thread's {@link ThreadHead} changes only when all
 * operations are collected.
 */
export class AppendDraft {
  readonly head: ThreadHead;
  readonly ops: WriteOperation[] = [];
  /**
   * The new end of each list span to which the append adds items, by the key prefix of the span. For spans, see `Spans`
   * in `channel-values.ts`.
   */
  spanEnds: SmallMap<string, number> | undefined;
  /** The size of the thread's record in bytes. */
  size = 0;
  /** The size in bytes of the largest value that the append stores. */
  largest = 0;
  readonly #kv: KeyValueStore;

  constructor(head: ThreadHead, kv: KeyValueStore) {
    this.head = head;
    this.#kv = kv;
  }

  /** Adds an operation that stores `value` under `key`. Returns the stored size of the value in bytes. */
  put(key: string, value: unknown): number {
    const bytes = encodeWithChecksum(value);
    this.ops.push({ key, value: bytes });
    if (bytes.length > this.largest) this.largest = bytes.length;
    return bytes.length;
  }

  /** Adds a value that already begins with its envelope (its length and checksum, see `checksum-envelope.ts`). */
  putSealed(key: string, value: Buffer): void {
    this.ops.push({ key, value });
  }

  del(key: string): void {
    this.ops.push({ key, value: null });
  }

  /** The value that a key will have when all writes in flight, and this draft, are stored. */
  get(key: string): Eventually<Buffer | undefined> {
    const { inFlight } = this.head;
    for (let i = inFlight.length; i >= 0; i--) {
      const found = findLast(i === inFlight.length ? this.ops : (inFlight[i] ?? []), key);
      if (found !== undefined) return found.value ?? undefined;
    }
    return this.#kv.get(key);
  }

  /** Reads a value like {@link get}, and decodes it. `what` names the value in errors. */
  read(key: string, what: string): Eventually<unknown> {
    return andThen(this.get(key), (bytes) => bytes && decodeWithChecksum(bytes, this.head.key, what));
  }
}

function findLast(ops: readonly WriteOperation[], key: string): WriteOperation | undefined {
  for (let i = ops.length - 1; i >= 0; i--) {
    const op = ops[i];
    if (op?.key === key) return op;
  }
  return undefined;
}
