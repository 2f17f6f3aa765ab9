import type { Counter, Gauge, Registry } from "prom-client";
import type { Logger } from "../ports/logger.ts";
import { sharedWhilePending } from "./cached-reading.ts";
import type { MetricFamily, MetricReading } from "./metric-family.ts";
import { presentAnswers, type MultiProcessMetrics } from "./read-all-shards.ts";

export interface MetricsResponse {
  readonly type: string;
  readonly body: string;
}

/** The metric that says, for each shard, whether its process has answered. */
const SHARD_UP = "heddle_shard_up";

/**
 * Renders metrics in the text format of Prometheus. If the server has several processes, each series is labelled with the shard of its
 * process, and in a cluster also with the node.
 */
export class Exposition {
  readonly #families: readonly MetricFamily[];
  readonly #logger: Logger;
  readonly #multiProcess: MultiProcessMetrics | undefined;
  #registry: Promise<Registry> | undefined;

  /** @param multiProcess absent: this process is the whole server */
  constructor(families: readonly MetricFamily[], logger: Logger, multiProcess?: MultiProcessMetrics) {
    this.#families = families;
    this.#logger = logger;
    this.#multiProcess = multiProcess;
  }

  /** The metrics of this process as JSON data, for the process that renders the metrics of all processes. */
  async snapshot(): Promise<unknown> {
    const registry = await (this.#registry ??= this.#register());
    return registry.getMetricsAsJSON();
  }

  /** Renders the metrics of the whole server. Calls while it renders get the same result. */
  readonly render: () => Promise<MetricsResponse> = sharedWhilePending(() => this.#render());

  async #render(): Promise<MetricsResponse> {
    const own = await (this.#registry ??= this.#register());
    const registry = this.#multiProcess === undefined ? own : await this.#ofAll(this.#multiProcess);
    return { type: own.contentType, body: await registry.metrics() };
  }

  async #ofAll(multiProcess: MultiProcessMetrics): Promise<Registry> {
    const { AggregatorRegistry, Gauge } = await import("prom-client");
    const [own, others] = await Promise.all([
      this.snapshot(),
      multiProcess.readOthers((metrics) => metrics.snapshot()),
    ]);
    const registry: Registry = AggregatorRegistry.aggregate([own, ...presentAnswers(others)] as object[]);
    const { shard: ownShard } = multiProcess;
    const up = [
      ...(ownShard === undefined ? [] : [[ownShard, 1] as const]),
      ...Array.from(others, ([shard, answer]) => [shard, answer === undefined ? 0 : 1] as const),
    ];
    // Without a label for the node, each shard has one series, even when the shard moves to another node.
    const gauge = new Gauge({
      name: SHARD_UP,
      help: "Whether the process of a shard has answered: 1, or 0, and then its metrics are missing here",
      labelNames: ["shard"],
      registers: [registry],
    });
    for (const [shard, value] of up.toSorted(([a], [b]) => a - b)) gauge.set({ shard }, value);
    return registry;
  }

  /**
   * Loads `prom-client` and registers the metrics, at the first request for metrics. Many servers never get such a request, and would only
   * start more slowly.
   */
  async #register(): Promise<Registry> {
    const { Counter, Gauge, Histogram, Registry } = await import("prom-client");
    const registry = new Registry();
    if (this.#multiProcess !== undefined) {
      const { shard = "none", node } = this.#multiProcess;
      registry.setDefaultLabels({ shard, ...(node !== undefined && { node }) });
    }
    const registers = [registry];
    for (const family of this.#families) {
      const { name, help } = family;
      if (family.type === "histogram") {
        const histogram = new Histogram({
          name,
          help,
          registers,
          buckets: [...family.buckets],
          collect: () => family.look((value) => histogram.observe(value)),
        });
        continue;
      }
      const labelNames = [...(family.labels ?? [])];
      const readingOf = () => this.#readingOf(name, family.read);
      if (family.type === "counter") {
        const counter: Counter = new Counter({
          name,
          help,
          registers,
          labelNames,
          async collect() {
            fill(counter, await readingOf());
          },
        });
      } else {
        const gauge: Gauge = new Gauge({
          name,
          help,
          registers,
          labelNames,
          async collect() {
            fill(gauge, await readingOf());
          },
        });
      }
    }
    return registry;
  }

  /** Reads a metric. A failure is only logged, so that the other metrics are still exposed. */
  async #readingOf(name: string, read: () => MetricReading | Promise<MetricReading>): Promise<MetricReading> {
    try {
      return await read();
    } catch (cause) {
      this.#logger.warn("a figure could not be read", { figure: name, error: String(cause) });
      return undefined;
    }
  }
}

/**
 * Replaces the values of a metric. It is synchronous, so that no reader sees only some of the values. An undefined reading removes all
 * values.
 */
function fill(metric: Counter | Gauge, reading: MetricReading): void {
  metric.reset();
  if (reading === undefined) metric.remove();
  else if (typeof reading === "number") metric.inc(reading);
  else for (const [labels, value] of reading) metric.inc(labels, value);
}
