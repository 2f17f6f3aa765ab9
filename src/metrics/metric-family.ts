/** Labels that distinguish the samples of a family, such as `{ graph: "agent" }`. Their names MUST be among {@link ScalarFamily.labels}. */
export type MetricLabels = { readonly [name: string]: string };

export type MetricSample = readonly [labels: MetricLabels, value: number];

interface Named {
  readonly name: string;
  /** One sentence, for people. */
  readonly help: string;
}

/** A counter or gauge. Its value is read when metrics are requested. */
export interface ScalarFamily extends Named {
  /** A counter starts at 0 when the process starts, and only goes up. */
  readonly type: "counter" | "gauge";
  readonly labels?: readonly string[];
  /** The value, or samples with labels. Undefined: no value is exposed. */
  read(): MetricReading | Promise<MetricReading>;
}

export type MetricReading = number | readonly MetricSample[] | undefined;

export interface HistogramFamily extends Named {
  readonly type: "histogram";
  /** Upper bounds of the buckets, ascending. */
  readonly buckets: readonly number[];
  /** Passes all further values to `observe`. Called at each request for metrics; the new `observe` replaces the earlier one. */
  look(observe: (value: number) => void): void;
}

export type MetricFamily = ScalarFamily | HistogramFamily;

type Read = ScalarFamily["read"];

export function counter(name: string, help: string, read: Read, ...labels: readonly string[]): ScalarFamily {
  return { name, help, type: "counter", labels, read };
}

export function gauge(name: string, help: string, read: Read, ...labels: readonly string[]): ScalarFamily {
  return { name, help, type: "gauge", labels, read };
}
