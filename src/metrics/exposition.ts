import type { Counter, Gauge, Registry } from "prom-client";
import type { Logger } from "../ports/logger.ts";
import type { Family, Reading } from "./metric-family.ts";

/** Figures as they go out. */
export interface Exposed {
  /** The content type. */
  readonly type: string;
  readonly body: string;
}

/** Tells figures in the text format of Prometheus. */
export class Exposition {
  readonly #families: readonly Family[];
  readonly #logger: Logger;
  #registry: Promise<Registry> | undefined;
  #telling: Promise<Exposed> | undefined;

  constructor(families: readonly Family[], logger: Logger) {
    this.#families = families;
    this.#logger = logger;
  }

  /** Who asks while an answer is being made is given the same. */
  tell(): Promise<Exposed> {
    return (this.#telling ??= this.#tell().finally(() => (this.#telling = undefined)));
  }

  async #tell(): Promise<Exposed> {
    const registry = await (this.#registry ??= this.#register());
    return { type: registry.contentType, body: await registry.metrics() };
  }

  /** At the first question: many servers are never asked, and a start is to be quick. */
  async #register(): Promise<Registry> {
    const { Counter, Gauge, Histogram, Registry } = await import("prom-client");
    const registry = new Registry();
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

  /** One that cannot be had is left out: it is no reason to tell nothing of the others. */
  async #readingOf(name: string, read: () => Reading | Promise<Reading>): Promise<Reading> {
    try {
      return await read();
    } catch (cause) {
      this.#logger.warn("a figure could not be read", { figure: name, error: String(cause) });
      return undefined;
    }
  }
}

/** In one turn, so that nobody meets it half full. */
function fill(metric: Counter | Gauge, reading: Reading): void {
  metric.reset();
  if (reading === undefined) metric.remove();
  else if (typeof reading === "number") metric.inc(reading);
  else for (const [labels, value] of reading) metric.inc(labels, value);
}
