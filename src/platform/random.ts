import { randomFillSync } from "node:crypto";
import type { Random } from "../ports/random.ts";

/**
 * The number of bytes that are read from the kernel at once, which is ten times cheaper than a read for each
 * id.
 */
const POOL_BYTES = 4096;
const MAX_BYTES_PER_CALL = 64;

/** Random bytes come from the kernel and cannot be predicted. The numbers of `float` can be predicted. */
export function systemRandom(): Random {
  let pool = randomFillSync(new Uint8Array(POOL_BYTES));
  let used = 0;
  return {
    bytes(count) {
      if (!Number.isInteger(count) || count < 0 || count > MAX_BYTES_PER_CALL) {
        throw new TypeError(`bytes(count) gives 0 to ${MAX_BYTES_PER_CALL} bytes, not ${count}`);
      }
      if (used + count > POOL_BYTES) {
        pool = randomFillSync(new Uint8Array(POOL_BYTES));
        used = 0;
      }
      // No byte is returned twice, so callers may keep and change what they get.
      const given = pool.subarray(used, used + count);
      used += count;
      return given;
    },
    float: () => Math.random(),
  };
}
