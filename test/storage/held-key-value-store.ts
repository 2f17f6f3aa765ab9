import type { Eventually } from "../../src/ports/eventually.ts";
import { GatedKeyValueStore } from "./gated-key-value-store.ts";

/** A read that waits. */
export interface HeldRead {
  readonly key: string;
  /** Lets it go on, and waits until those that asked have its answer. `value`: which moment it shows. */
  go(value: "of its beginning" | "of its end"): Promise<void>;
}

/** A store that answers at once, except for the keys that a test holds. */
export class HeldKeyValueStore extends GatedKeyValueStore {
  /** The reads that wait, oldest first. */
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
