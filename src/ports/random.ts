/** The only source of randomness in the server. Tests and the simulation replace it, so that their results can be repeated. */
export interface Random {
  /** `count` random bytes (at most 64). MUST be unpredictable in production: ids of runs and threads are made from them. */
  bytes(count: number): Uint8Array;
  /** A uniform random number from 0 (included) to 1 (excluded), for jitter. */
  float(): number;
}
