/** The metrics of a server at one moment, from `/metrics`. */
export class MetricsSample {
  /** Milliseconds, by the page's clock. */
  readonly at: number;
  readonly #samples: ReadonlyMap<string, readonly ParsedSample[]>;

  constructor(at: number, samples: ReadonlyMap<string, readonly ParsedSample[]>) {
    this.at = at;
    this.#samples = samples;
  }

  /** Returns the sum of a metric's samples, or of those whose labels match `wanted`; undefined if the server does not report the metric. */
  sum(name: string, wanted: (labels: MetricSampleLabels) => boolean = () => true): number | undefined {
    const found = this.#samples.get(name);
    return found?.reduce((sum, { labels, value }) => (wanted(labels) ? sum + value : sum), 0);
  }

  /** Returns the value of a metric's sample with this label; undefined if there is none. */
  of(name: string, label: string, value: string): number | undefined {
    return this.samples(name).find(({ labels }) => labels.get(label) === value)?.value;
  }

  samples(name: string): readonly ParsedSample[] {
    return this.#samples.get(name) ?? [];
  }
}

export type MetricSampleLabels = ReadonlyMap<string, string>;

export interface ParsedSample {
  readonly labels: MetricSampleLabels;
  readonly value: number;
}

const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/;
const LABEL = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)",?/g;

/** Parses the Prometheus text format. Unknown lines are skipped. */
export function parseMetrics(text: string, at: number): MetricsSample {
  const samples = new Map<string, ParsedSample[]>();
  for (const line of text.split("\n")) {
    const [, name, labels = "", value] = LINE.exec(line) ?? [];
    if (name === undefined || value === undefined) continue;
    const sample = { labels: labelsOf(labels), value: value === "+Inf" ? Infinity : Number(value) };
    const known = samples.get(name);
    if (known === undefined) samples.set(name, [sample]);
    else known.push(sample);
  }
  return new MetricsSample(at, samples);
}

const ESCAPED: { readonly [letter: string]: string } = { n: "\n", '"': '"', "\\": "\\" };

/** Parsed labels by their text. Each sample of five minutes has the same labels, so they are parsed and stored once. */
const knownLabels = new Map<string, MetricSampleLabels>();
const MAX_KNOWN_LABELS = 1_000;

function labelsOf(text: string): MetricSampleLabels {
  const known = knownLabels.get(text);
  if (known !== undefined) return known;
  if (knownLabels.size >= MAX_KNOWN_LABELS) knownLabels.clear();
  const labels = new Map<string, string>();
  knownLabels.set(text, labels);
  for (const [, name = "", value = ""] of text.matchAll(LABEL)) {
    labels.set(
      name,
      value.replaceAll(/\\(.)/g, (_, letter: string) => ESCAPED[letter] ?? letter),
    );
  }
  return labels;
}
