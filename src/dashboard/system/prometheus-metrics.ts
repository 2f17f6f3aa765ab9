/** The metrics of a server at one moment, from `/metrics`. */
export class MetricsSample {
  /** The time when the metrics were read, as `performance.now()` gives it. */
  readonly at: number;
  readonly #layout: MetricsLayout;
  readonly #values: Float64Array;

  constructor(at: number, layout: MetricsLayout, values: Float64Array) {
    this.at = at;
    this.#layout = layout;
    this.#values = values;
  }

  /** Returns the sum of a metric's samples, or of those whose labels match `wanted`; undefined if the server does not report the metric. */
  sum(name: string, wanted: (labels: MetricSampleLabels) => boolean = () => true): number | undefined {
    if (!this.#layout.byName.has(name)) return undefined;
    return this.samples(name).reduce((sum, { labels, value }) => (wanted(labels) ? sum + value : sum), 0);
  }

  /** Returns the value of a metric's sample with this label; undefined if there is none. */
  of(name: string, label: string, value: string): number | undefined {
    return this.samples(name).find(({ labels }) => labels.get(label) === value)?.value;
  }

  samples(name: string): readonly ParsedSample[] {
    const places = this.#layout.byName.get(name) ?? [];
    return places.map(({ labels, index }) => ({ labels, value: this.#values[index] ?? Number.NaN }));
  }
}

/**
 * The list of metrics that a server reports, in their order. All {@link MetricsSample}s with the same list
 * share one layout.
 */
interface MetricsLayout {
  /** The name and the labels of each sample, as the server wrote them. */
  readonly series: readonly string[];
  /** The labels of each metric's samples and the indexes of their values, by the name of the metric. */
  readonly byName: ReadonlyMap<
    string,
    readonly { readonly labels: MetricSampleLabels; readonly index: number }[]
  >;
}

export type MetricSampleLabels = ReadonlyMap<string, string>;

export interface ParsedSample {
  readonly labels: MetricSampleLabels;
  readonly value: number;
}

const LINE = /^([a-zA-Z_:][\w:]*(?:\{.*\})?) (\S+)$/;
const LABEL = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)",?/g;

let lastLayout: MetricsLayout | undefined;

/** Parses the Prometheus text format. Unknown lines are skipped. */
export function parseMetrics(text: string, at: number): MetricsSample {
  const series: string[] = [];
  const values: number[] = [];
  for (const line of text.split("\n")) {
    const [, one, value] = LINE.exec(line) ?? [];
    if (one === undefined || value === undefined) continue;
    series.push(one);
    values.push(value === "+Inf" ? Infinity : Number(value));
  }
  const isKnown =
    lastLayout?.series.length === series.length && lastLayout.series.every((one, i) => one === series[i]);
  if (lastLayout === undefined || !isKnown) lastLayout = layoutOf(series);
  return new MetricsSample(at, lastLayout, Float64Array.from(values));
}

function layoutOf(series: readonly string[]): MetricsLayout {
  const byName = new Map<string, { labels: MetricSampleLabels; index: number }[]>();
  for (const [index, one] of series.entries()) {
    const [name = ""] = one.split("{", 1);
    const place = { labels: labelsOf(one.slice(name.length)), index };
    const known = byName.get(name);
    if (known === undefined) byName.set(name, [place]);
    else known.push(place);
  }
  return { series, byName };
}

const ESCAPED: { readonly [letter: string]: string } = { n: "\n", '"': '"', "\\": "\\" };

function labelsOf(text: string): MetricSampleLabels {
  const labels = new Map<string, string>();
  for (const [, name = "", value = ""] of text.matchAll(LABEL)) {
    labels.set(
      name,
      value.replaceAll(/\\(.)/g, (_, letter: string) => ESCAPED[letter] ?? letter),
    );
  }
  return labels;
}
