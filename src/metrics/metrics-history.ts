import type { Clock } from "../ports/clock.ts";
import type { Cancel, Scheduler } from "../ports/scheduler.ts";
import type { MetricsHistoryRecord } from "../ports/shard-metrics.ts";

/** Milliseconds between two entries of the history. */
export const ENTRY_INTERVAL_MS = 10_000;
/** The number of entries that are kept: the entries of one hour. */
export const MAX_HISTORY_ENTRIES = 360;
/**
 * Milliseconds between two measurements of the event loop's lag. The measurement for `/metrics` is ten times as frequent, but ends soon
 * after the last request. The history always measures, and must not keep an idle process busy.
 */
const LAG_INTERVAL_MS = 1_000;

/** The figures in each entry. A `level` is stored as read. A `rate` is read as a counter, and stored as its growth per second. */
export const HISTORY_FIGURES = {
  runs_ended_per_second: "rate",
  runs_failed_per_second: "rate",
  runs_running: "level",
  runs_queued: "level",
  run_wait_p50_seconds: "level",
  run_wait_p99_seconds: "level",
  actors_live: "level",
  event_loop_lag_max_seconds: "level",
  event_loop_busy_ratio: "rate",
  cpu_ratio: "rate",
  memory_bytes: "level",
  storage_bytes: "level",
  connections: "level",
  requests_per_second: "rate",
  requests_failed_per_second: "rate",
  webhooks_pending: "level",
  webhooks_dead: "level",
} as const;
export type HistoryFigure = keyof typeof HISTORY_FIGURES;
const NAMES = Object.keys(HISTORY_FIGURES) as readonly HistoryFigure[];

/** Figures at one moment; absent: not known. The lag is measured by the history itself. */
export type HistoryReading = {
  readonly [name in Exclude<HistoryFigure, "event_loop_lag_max_seconds">]?: number | undefined;
};

export interface MetricsHistoryDeps {
  readonly clock: Clock;
  readonly scheduler: Scheduler;
  read(): HistoryReading;
}

/** The figures of the last hour. They are kept in about 50 KB of memory, however busy the server is. */
export class MetricsHistory {
  readonly #deps: MetricsHistoryDeps;
  /** Ring buffers. When they are full, the oldest entry is at the index `#count % MAX_HISTORY_ENTRIES`. NaN: not known. */
  readonly #times = new Float64Array(MAX_HISTORY_ENTRIES);
  readonly #values: readonly Float64Array[] = NAMES.map(() => new Float64Array(MAX_HISTORY_ENTRIES));
  #count = 0;
  #before: { readonly at: number; readonly reading: HistoryReading } | undefined;
  #maxLagMs = 0;
  #cancel: Cancel = () => undefined;

  constructor(deps: MetricsHistoryDeps) {
    this.#deps = deps;
  }

  /** Takes the first entry now, and then one in each interval. */
  start(): void {
    const now = this.#deps.clock.mono();
    this.#take(now);
    this.#wait(now, now + ENTRY_INTERVAL_MS);
  }

  close(): void {
    this.#cancel();
  }

  toRecord(): MetricsHistoryRecord<HistoryFigure> {
    const from = Math.max(0, this.#count - MAX_HISTORY_ENTRIES);
    const places = Array.from({ length: this.#count - from }, (_, i) => (from + i) % MAX_HISTORY_ENTRIES);
    const listOf = (values: Float64Array | undefined) => places.map((place) => rounded(values?.[place]));
    return {
      interval_seconds: ENTRY_INTERVAL_MS / 1_000,
      times: places.map((place) => new Date(this.#times[place] ?? 0).toISOString()),
      figures: Object.fromEntries(NAMES.map((name, i) => [name, listOf(this.#values[i])])) as {
        [name in HistoryFigure]: (number | null)[];
      },
    };
  }

  #wait(from: number, due: number): void {
    const { clock, scheduler } = this.#deps;
    this.#cancel = scheduler.after(LAG_INTERVAL_MS, () => {
      const now = clock.mono();
      this.#maxLagMs = Math.max(this.#maxLagMs, now - from - LAG_INTERVAL_MS);
      if (now < due) return this.#wait(now, due);
      this.#take(now);
      // After a pause of the process of more than one interval, one entry is taken and the missed entries are skipped.
      this.#wait(now, (now - due < ENTRY_INTERVAL_MS ? due : now) + ENTRY_INTERVAL_MS);
    });
  }

  #take(at: number): void {
    const { clock, read } = this.#deps;
    const reading = read();
    const place = this.#count++ % MAX_HISTORY_ENTRIES;
    this.#times[place] = clock.now();
    for (const [i, name] of NAMES.entries()) {
      const values = this.#values[i];
      if (values !== undefined) values[place] = this.#valueOf(name, at, reading) ?? Number.NaN;
    }
    this.#before = { at, reading };
    this.#maxLagMs = 0;
  }

  #valueOf(name: HistoryFigure, at: number, reading: HistoryReading): number | undefined {
    if (name === "event_loop_lag_max_seconds")
      return this.#before === undefined ? undefined : this.#maxLagMs / 1_000;
    const value = reading[name];
    if (HISTORY_FIGURES[name] === "level" || value === undefined) return value;
    const before = this.#before?.reading[name];
    const ms = at - (this.#before?.at ?? at);
    return before === undefined || ms <= 0 ? undefined : ((value - before) * 1_000) / ms;
  }
}

/** Rounds to six significant digits. More digits are of no use, and would take up half of the response. */
const rounded = (value: number | undefined): number | null =>
  value === undefined || Number.isNaN(value) ? null : Number(value.toPrecision(6));
