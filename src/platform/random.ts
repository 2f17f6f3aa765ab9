import { randomFillSync } from "node:crypto";
import type { Random } from "../ports/random.ts";

/** Asking the kernel once for many ids is ten times cheaper than once for each. */
const POOL = 4096;
const LARGEST = 64;

/** Unpredictable bytes. */
export function systemRandom(): Random {
  let pool = randomFillSync(new Uint8Array(POOL));
  let used = 0;
  return {
    bytes(count) {
      if (!Number.isInteger(count) || count < 0 || count > LARGEST) {
        throw new TypeError(`bytes(count) gives 0 to ${LARGEST} bytes, not ${count}`);
      }
      if (used + count > POOL) {
        pool = randomFillSync(new Uint8Array(POOL));
        used = 0;
      }
      // No byte is given out twice, so that callers may keep and change what they get.
      const given = pool.subarray(used, used + count);
      used += count;
      return given;
    },
    float: () => Math.random(),
  };
}
