/**
 * The upper bound of each bucket is this many times the upper bound of the previous bucket. So a quantile is too high
 * by at most this factor.
 */
const GROWTH = 1.3;
/** The number of buckets. The last one counts all durations of more than about three hours. */
const BUCKETS = 64;

/**
 * A histogram: counts durations in buckets by their length. Adding a duration only increments a number, so it costs
 * next to nothing.
 */
export class DurationHistogram {
  readonly #counts: Float64Array;

  constructor(counts = new Float64Array(BUCKETS)) {
    this.#counts = counts;
  }

  add(ms: number): void {
    const bucket = ms < 1 ? 0 : Math.min(BUCKETS - 1, 1 + Math.floor(Math.log(ms) / Math.log(GROWTH)));
    this.#counts[bucket] = (this.#counts[bucket] ?? 0) + 1;
  }

  copy(): DurationHistogram {
    return new DurationHistogram(this.#counts.slice());
  }

  static sum(all: readonly DurationHistogram[]): DurationHistogram {
    const sum = new Float64Array(BUCKETS);
    for (const counts of all)
      for (const [bucket, count] of counts.#counts.entries()) sum[bucket] = (sum[bucket] ?? 0) + count;
    return new DurationHistogram(sum);
  }

  /** The durations that were added since `before`, which is an earlier copy of this histogram. */
  since(before: DurationHistogram): DurationHistogram {
    return new DurationHistogram(this.#counts.map((count, bucket) => count - (before.#counts[bucket] ?? 0)));
  }

  /**
   * The milliseconds that `share` (0 to 1) of the durations did not exceed, rounded up to the bound of a bucket (0 for
   * less than 1 ms); undefined if there are no durations.
   */
  quantile(share: number): number | undefined {
    const all = this.#counts.reduce((sum, count) => sum + count, 0);
    if (all === 0) return undefined;
    let sum = 0;
    const bucket = this.#counts.findIndex((count) => (sum += count) >= share * all);
    return bucket === 0 ? 0 : GROWTH ** bucket;
  }
}
