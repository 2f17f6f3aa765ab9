/** The metrics of one process of a server. */
export interface ProcessSample {
  /** The number of the process's shard; undefined if it is the whole server. */
  readonly shard: string | undefined;
  /** The name of the process's node; undefined outside a cluster. */
  readonly node: string | undefined;
  readonly sample: MetricsSample;
}

/** The metrics of a server at one moment, from `/metrics`. */
export class MetricsSample {
  /** The time when the metrics were read, as `performance.now()` gives it. */
  readonly at: number;
  readonly #layout: MetricsLayout;
  readonly #values: Float64Array;
  #processes: ReadonlyMap<string, ProcessSample> | undefined;

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

  /** Returns the sum of a metric's samples with this label; undefined if there is none. */
  of(name: string, label: string, value: string): number | undefined {
    const found = this.samples(name).filter(({ labels }) => labels.get(label) === value);
    return found.length === 0 ? undefined : found.reduce((sum, one) => sum + one.value, 0);
  }

  /** The metrics of each process of the server. The key is the same in all samples. */
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
 * The list of metrics that a server reports, in their order. All {@link MetricsSample}s with the same list
 * share one layout.
 */
interface MetricsLayout {
  /** The name and the labels of each sample, as the server wrote them. */
  readonly series: readonly string[];
  /** The labels of each metric's samples and the indexes of their values, by the name of the metric. */
  readonly byName: ReadonlyMap<string, readonly SamplePlace[]>;
  /** The part of the list that each process has. */
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

/** The metric that says for each shard whether its process has answered. Servers with one process do not have it. */
export const SHARD_UP = "heddle_shard_up";

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
  const byName = new Map<string, SamplePlace[]>();
  const processes = new Map<
    string,
    { shard: string | undefined; node: string | undefined; byName: typeof byName }
  >();
  for (const [index, one] of series.entries()) {
    const [name = ""] = one.split("{", 1);
    const labels = labelsOf(one.slice(name.length));
    addPlace(byName, name, { labels, index });
    // Other processes say this about a shard.
    if (name === SHARD_UP) continue;
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
        // The metrics of a process are a sample, too: that of a server whose only process it is.
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
