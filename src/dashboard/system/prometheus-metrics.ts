/** The metrics of one process of the server. */
export interface ProcessSample {
  /** The number of the shard that the process serves; undefined if the server has only one process. */
  readonly shard: string | undefined;
  /** The name of the process's node; undefined if there is no cluster. */
  readonly node: string | undefined;
  readonly sample: MetricsSample;
}

/** All metrics of a server at one moment, from a response of `/metrics`. */
export class MetricsSample {
  /** When the metrics were read, in milliseconds of `performance.now()`. */
  readonly at: number;
  readonly #layout: MetricsLayout;
  readonly #values: Float64Array;
  #processes: ReadonlyMap<string, ProcessSample> | undefined;

  constructor(at: number, layout: MetricsLayout, values: Float64Array) {
    this.at = at;
    this.#layout = layout;
    this.#values = values;
  }

  /**
   * Returns the sum of a metric's values, over all label sets or only those for which `wanted` returns true. Undefined
   * if the server does not report the metric.
   */
  sum(name: string, wanted: (labels: MetricSampleLabels) => boolean = () => true): number | undefined {
    if (!this.#layout.byName.has(name)) return undefined;
    return this.samples(name).reduce((sum, { labels, value }) => (wanted(labels) ? sum + value : sum), 0);
  }

  /**
   * Returns the sum of a metric's values over the label sets in which `label` has the value `value`. Undefined if
   * there is none.
   */
  of(name: string, label: string, value: string): number | undefined {
    const found = this.samples(name).filter(({ labels }) => labels.get(label) === value);
    return found.length === 0 ? undefined : found.reduce((sum, one) => sum + one.value, 0);
  }

  /** The metrics of each process of the server. A process has the same key in each {@link MetricsSample}. */
  get processes(): ReadonlyMap<string, ProcessSample> {
    this.#processes ??= new Map(
      Array.from(this.#layout.processes, ([key, { shard, node, layout }]) => [
        key,
        { shard, node, sample: new MetricsSample(this.at, layout, this.#values) },
      ]),
    );
    return this.#processes;
  }

  samples(name: string): readonly ParsedSample[] {
    const places = this.#layout.byName.get(name) ?? [];
    return places.map(({ labels, index }) => ({ labels, value: this.#values[index] ?? Number.NaN }));
  }
}

/**
 * The metrics that a server reports, in their order. Consecutive {@link MetricsSample}s with the same metrics share
 * one layout, so that each sample only stores its values.
 */
interface MetricsLayout {
  /** The name and labels of each value, as text from the server. */
  readonly series: readonly string[];
  /** For each name of a metric, its label sets, each with the index of its value. */
  readonly byName: ReadonlyMap<string, readonly SamplePlace[]>;
  /** The layouts of the server's processes, which contain only the process's metrics. */
  readonly processes: ReadonlyMap<string, ProcessLayout>;
}

interface ProcessLayout extends Omit<ProcessSample, "sample"> {
  readonly layout: MetricsLayout;
}

interface SamplePlace {
  readonly labels: MetricSampleLabels;
  readonly index: number;
}

export type MetricSampleLabels = ReadonlyMap<string, string>;

export interface ParsedSample {
  readonly labels: MetricSampleLabels;
  readonly value: number;
}

/**
 * The metric with the value 1 for each shard whose process has responded, else 0. Servers with one process do not
 * report it.
 */
export const SHARD_UP_METRIC = "heddle_shard_up";

const LINE = /^([a-zA-Z_:][\w:]*(?:\{.*\})?) (\S+)$/;
const LABEL = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)",?/g;

let lastLayout: MetricsLayout | undefined;

/**
 * Parses a response in the Prometheus text format. `at`: milliseconds of `performance.now()`. Lines that are not a
 * value of a metric are skipped.
 */
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
  const byName = new Map<string, SamplePlace[]>();
  const processes = new Map<
    string,
    { shard: string | undefined; node: string | undefined; byName: typeof byName }
  >();
  for (const [index, one] of series.entries()) {
    const [name = ""] = one.split("{", 1);
    const labels = labelsOf(one.slice(name.length));
    addPlace(byName, name, { labels, index });
    // This metric tells whether the shard's process responds. Another process reports it.
    if (name === SHARD_UP_METRIC) continue;
    const [shard, node] = [labels.get("shard"), labels.get("node")];
    const key = `${shard ?? ""}/${node ?? ""}`;
    const process = processes.get(key) ?? { shard, node, byName: new Map() };
    processes.set(key, process);
    addPlace(process.byName, name, { labels, index });
  }
  return {
    series,
    byName,
    processes: new Map(
      Array.from(processes, ([key, { shard, node, byName }]) => {
        const all = new Map<string, ProcessLayout>();
        const process = { shard, node, layout: { series, byName, processes: all } };
        // The process's metrics are also a {@link MetricsSample}, in which this process is the only one.
        all.set(key, process);
        return [key, process];
      }),
    ),
  };
}

function addPlace(byName: Map<string, SamplePlace[]>, name: string, place: SamplePlace): void {
  const known = byName.get(name);
  if (known === undefined) byName.set(name, [place]);
  else known.push(place);
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
