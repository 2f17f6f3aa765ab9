/** All randomness. */
export interface Random {
  /** `count` random bytes (at most 64). MUST be unpredictable in production: ids of runs and threads come from it. */
  bytes(count: number): Uint8Array;
  /** Evenly from 0 (included) to 1 (excluded); for jitter. */
  float(): number;
}
