import type { Head } from "./thread-heads.ts";
import type { Kv, Op } from "./kv.ts";
import { seal, unseal } from "./envelope.ts";

/** The changes of one append in the making. Nothing is changed in the head before it is complete. */
export class Draft {
  readonly head: Head;
  readonly ops: Op[] = [];
  /** Tips that it moves on, if any. */
  tips: Map<string, number> | undefined;
  /** Bytes of the thread's record. */
  size = 0;
  readonly #kv: Kv;

  constructor(head: Head, kv: Kv) {
    this.head = head;
    this.#kv = kv;
  }

  /** Returns its bytes. */
  put(key: string, value: unknown): number {
    const bytes = seal(value);
    this.ops.push({ key, value: bytes });
    return bytes.length;
  }

  /** Puts a value that is sealed already. */
  mark(key: string, value: Buffer): void {
    this.ops.push({ key, value });
  }

  del(key: string): void {
    this.ops.push({ key, value: null });
  }

  /** A value as it will be once all that is on its way, this draft too, is stored. */
  get(key: string): Buffer | undefined {
    const { flights } = this.head;
    for (let i = flights.length; i >= 0; i--) {
      const found = findLast(i === flights.length ? this.ops : (flights[i] ?? []), key);
      if (found !== undefined) return found.value ?? undefined;
    }
    return this.#kv.getSync(key);
  }

  /** The same, decoded. `what` names it for people. */
  read(key: string, what: string): unknown {
    const bytes = this.get(key);
    return bytes === undefined ? undefined : unseal(bytes, this.head.key, what);
  }
}

function findLast(ops: readonly Op[], key: string): Op | undefined {
  for (let i = ops.length - 1; i >= 0; i--) {
    const op = ops[i];
    if (op?.key === key) return op;
  }
  return undefined;
}
