import type { Eventually } from "../../src/ports/eventually.ts";
import { GatedKeyValueStore } from "./gated-key-value-store.ts";

/** A waiting read. */
export interface HeldRead {
  readonly key: string;
  /** Completes the read, and waits until its callers have the result. `value`: the moment whose value it returns. */
  go(value: "of its beginning" | "of its end"): Promise<void>;
}

/** A store with synchronous reads, except of the keys that a test holds back. */
export class HeldKeyValueStore extends GatedKeyValueStore {
  /** The waiting reads, oldest first. */
  readonly reads: HeldRead[] = [];
  readonly #held = new Set<string>();

  /** From now on, reads of these keys wait. */
  hold(...keys: readonly string[]): void {
    for (const key of keys) this.#held.add(key);
  }

  /** Reads that begin from now on do not wait. */
  unhold(): void {
    this.#held.clear();
  }

  override get(key: string): Eventually<Buffer | undefined> {
    if (!this.#held.has(key)) return super.get(key);
    const first = super.get(key);
    return new Promise((resolve, reject) => {
      const go = async (value: "of its beginning" | "of its end"): Promise<void> => {
        try {
          resolve(value === "of its beginning" ? first : super.get(key));
        } catch (cause) {
          reject(cause as Error);
        }
        await new Promise((settled) => setImmediate(settled));
      };
      this.reads.push({ key, go });
    });
  }
}
