/** The only source of randomness. */
export interface Random {
  /** `count` random bytes (at most 64). MUST be unpredictable in production: ids of runs and threads are made from them. */
  bytes(count: number): Uint8Array;
  /** A uniform random number from 0 (included) to 1 (excluded), for jitter. */
  float(): number;
}
