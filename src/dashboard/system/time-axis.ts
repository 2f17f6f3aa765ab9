/** A range of times in epoch milliseconds. */
export interface TimeSpan {
  readonly from: number;
  readonly to: number;
  /** A description of the range, such as `the last hour`. */
  readonly name: string;
}

const STEPS = [1, 2, 5, 10, 15, 20, 30, 60].map((minutes) => minutes * 60_000);
/** The largest number of labels that there is room for below a chart. */
const MAX_TICKS = 4;

/**
 * Returns round times within a range, in epoch milliseconds. Times near its ends are left out, because there is no
 * room for their labels.
 */
export function axisTimesOf({ from, to }: TimeSpan): readonly number[] {
  const step = STEPS.find((one) => (to - from) / one <= MAX_TICKS) ?? 60 * 60_000;
  const edge = (to - from) * 0.08;
  const ticks: number[] = [];
  for (let at = Math.ceil((from + edge) / step) * step; at <= to - edge; at += step) ticks.push(at);
  return ticks;
}
