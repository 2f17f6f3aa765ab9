import type { Series } from "./metric-series.ts";

const WIDTH = 240;
const HEIGHT = 48;

/** A metric: its current value, and its line over the last minutes. `span`: the number of samples that fit. */
export function TimeSeriesChart({ series, span }: { readonly series: Series; readonly span: number }) {
  const { title, unit, values, note, isBad } = series;
  const now = values.at(-1) ?? null;
  const shown = values.slice(-span);
  const most = Math.max(0, ...shown.map((value) => value ?? 0));
  const said = now === null ? "not known yet" : unit(now);
  return (
    <figure class={`card tile chart ${isBad ? "bad" : ""}`}>
      <figcaption class="dim">{title}</figcaption>
      {now === null ? <span class="dim coming">collecting…</span> : <strong>{said}</strong>}
      <svg
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${title}: now ${said}, at most ${unit(most)} in the last minutes`}
      >
        {piecesOf(shown, span, most).map((points) => (
          <g key={points[0]?.[0]}>
            <polygon points={text([[first(points), HEIGHT], ...points, [end(points), HEIGHT]])} />
            <polyline points={text(points)} />
          </g>
        ))}
      </svg>
      <span class="dim most">{most > 0 && `up to ${unit(most)}`}</span>
      <span class="dim">{note}</span>
    </figure>
  );
}

type Point = readonly [x: number, y: number];

/** Returns the line in pieces, interrupted where a value is missing. The last sample is at the right. */
function piecesOf(values: readonly (number | null)[], span: number, most: number): readonly Point[][] {
  const pieces: Point[][] = [];
  let piece: Point[] | null = null;
  const step = WIDTH / (span - 1);
  const from = WIDTH - (values.length - 1) * step;
  // A line on the very edge would be cut in half.
  const height = HEIGHT - 2;
  for (const [i, value] of values.entries()) {
    if (value === null) {
      piece = null;
      continue;
    }
    if (piece === null) pieces.push((piece = []));
    piece.push([from + i * step, 1 + height - (most === 0 ? 0 : (value / most) * height)]);
  }
  return pieces;
}

const first = (points: readonly Point[]): number => points[0]?.[0] ?? 0;
const end = (points: readonly Point[]): number => points.at(-1)?.[0] ?? 0;
const text = (points: readonly Point[]): string =>
  points.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(" ");
