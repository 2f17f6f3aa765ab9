/** A distribution of samples. The values, except for `count`, are in the unit of the samples. */
export interface Summary {
  readonly count: number;
  readonly mean: number;
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
  readonly max: number;
}

/** The smallest sample that at least `share` (0 to 1) of all samples do not exceed. `sorted` MUST be ascending. */
export function quantile(sorted: ArrayLike<number>, share: number): number {
  if (sorted.length === 0) return Number.NaN;
  const index = Math.min(sorted.length - 1, Math.max(0, Math.ceil(share * sorted.length) - 1));
  return sorted[index] as number;
}

export function summarize(samples: readonly number[]): Summary {
  const sorted = Float64Array.from(samples).sort();
  let sum = 0;
  for (const sample of sorted) sum += sample;
  return {
    count: sorted.length,
    mean: sorted.length === 0 ? Number.NaN : sum / sorted.length,
    p50: quantile(sorted, 0.5),
    p90: quantile(sorted, 0.9),
    p99: quantile(sorted, 0.99),
    max: quantile(sorted, 1),
  };
}

/**
 * The median of the rounds, the lowest and the highest. Absolute figures differ between rounds, and the spread shows
 * by how much.
 */
export interface Spread {
  readonly median: number;
  readonly low: number;
  readonly high: number;
}

export function spread(rounds: readonly number[]): Spread {
  const sorted = Float64Array.from(rounds).sort();
  const half = sorted.length >> 1;
  const median =
    sorted.length % 2 === 1
      ? quantile(sorted, 0.5)
      : ((sorted[half - 1] ?? Number.NaN) + (sorted[half] ?? Number.NaN)) / 2;
  return { median, low: quantile(sorted, 0), high: quantile(sorted, 1) };
}

/** The slope of the least-squares line through the points: by how much y grows when x grows by 1. */
export function slope(points: readonly (readonly [x: number, y: number])[]): number {
  const mean = (of: 0 | 1) => points.reduce((sum, point) => sum + point[of], 0) / points.length;
  const [x0, y0] = [mean(0), mean(1)];
  let above = 0;
  let below = 0;
  for (const [x, y] of points) {
    above += (x - x0) * (y - y0);
    below += (x - x0) ** 2;
  }
  return above / below;
}
