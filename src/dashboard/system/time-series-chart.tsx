import type { ChartSeries } from "./metric-series.ts";
import { axisTimesOf, type TimeSpan } from "./time-axis.ts";

const WIDTH = 240;
const HEIGHT = 48;

/** Between two values that are further apart than this, in milliseconds, the line is interrupted. */
const MAX_GAP_MS = 60_000;

/** Matches the space between a number and its unit, which is made a non-breaking one. */
const BEFORE_UNIT = /(?<=\d) (?=(?:%|ms|s|[KMGT]?B)(?![a-z]))/gi;
const unbroken = (text: string): string => text.replaceAll(BEFORE_UNIT, "\u00a0");

/** The chart of a metric: its current value, and a line of its values over time. */
export function TimeSeriesChart({ series, span }: { readonly series: ChartSeries; readonly span: TimeSpan }) {
  const { title, unit, times, values, below, note, isBad } = series;
  const now = series.now ?? values.at(-1) ?? null;
  const isShown = (_: unknown, i: number) => (times[i] ?? 0) >= span.from;
  const shown = values.filter(isShown);
  const at = times.filter(isShown);
  const most = Math.max(0, ...shown.map((value) => value ?? 0));
  const said = now === null ? "not known yet" : unit(now);
  const x = (time: number) => ((time - span.from) / (span.to - span.from)) * WIDTH;
  const lineOf = (list: readonly (number | null)[]) =>
    piecesOf(list, at.map(x), most, (MAX_GAP_MS / (span.to - span.from)) * WIDTH);
  return (
    <figure class={`card tile chart ${isBad ? "bad" : ""}`}>
      <figcaption class="dim">{title}</figcaption>
      {now === null ? <span class="dim coming">Loading…</span> : <strong>{said}</strong>}
      <svg
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${title}: now ${said}, at most ${unit(most)} in ${span.name}`}
      >
        {axisTimesOf(span).map((tick) => (
          <line key={tick} x1={x(tick)} x2={x(tick)} y1="0" y2={HEIGHT} />
        ))}
        {lineOf(shown).map((points) => (
          <g key={points[0]?.[0]}>
            <polygon points={text([[first(points), HEIGHT], ...points, [end(points), HEIGHT]])} />
            <polyline points={text(points)} />
          </g>
        ))}
        {below !== undefined &&
          lineOf(below.values.filter(isShown)).map((points) => (
            <polyline key={points[0]?.[0]} class={below.isBad ? "bad" : "second"} points={text(points)} />
          ))}
      </svg>
      <span class="axis dim" aria-hidden="true">
        {axisTimesOf(span).map((tick) => (
          <time key={tick} style={{ left: `${(x(tick) / WIDTH) * 100}%` }}>
            {new Date(tick).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" })}
          </time>
        ))}
      </span>
      <span class="dim most">{most > 0 && unbroken(`up to ${unit(most)}`)}</span>
      <span class="dim">{unbroken(note)}</span>
    </figure>
  );
}

type Point = readonly [x: number, y: number];

/**
 * Splits a line where a value is missing, or where two values are further apart than `gap`. `xs`: the x coordinates of
 * the values. `most`: the value at the top.
 */
function piecesOf(
  values: readonly (number | null)[],
  xs: readonly number[],
  most: number,
  gap: number,
): readonly Point[][] {
  const pieces: Point[][] = [];
  let piece: Point[] | null = null;
  // The line stays one pixel away from the upper and lower edges, where half of its width would be cut off.
  const height = HEIGHT - 2;
  for (const [i, value] of values.entries()) {
    if (value === null) {
      piece = null;
      continue;
    }
    const x = xs[i] ?? 0;
    if (piece === null || x - end(piece) > gap) pieces.push((piece = []));
    piece.push([x, 1 + height - (most === 0 ? 0 : (value / most) * height)]);
  }
  // A line through only one point is invisible. With the point given twice, it is drawn as a dot.
  return pieces.map((points) => (points.length === 1 ? [...points, ...points] : points));
}

const first = (points: readonly Point[]): number => points[0]?.[0] ?? 0;
const end = (points: readonly Point[]): number => points.at(-1)?.[0] ?? 0;
const text = (points: readonly Point[]): string =>
  points.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(" ");
