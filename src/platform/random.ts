import { randomFillSync } from "node:crypto";
import type { Random } from "../ports/random.ts";

/** Bytes that are read from the kernel at once. A read for each id would take ten times as long. */
const POOL_BYTES = 4096;
const MAX_BYTES_PER_CALL = 64;

/** The result of `bytes` is cryptographically secure; the result of `float` is not. */
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
